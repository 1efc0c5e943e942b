//! The reports of a call's attempts.

use std::{fmt, mem, ops::Deref, time::Duration};

use super::{AttemptOutcome, AttemptReport};
use crate::policy::{Hint, Reach};

/// The reports of a call's attempts. Those of up to three, which is what a policy has without a reason (S12), are kept
/// in place: a list of their own would be another allocation, and a larger one.
pub(super) struct Attempts {
    few: [AttemptReport; FEW],
    length: usize,
    /// All of them, where there are more.
    many: Vec<AttemptReport>,
}

const FEW: usize = 3;

/// Stands where there is none yet.
const NONE: AttemptReport = AttemptReport {
    number: 0,
    started: Duration::ZERO,
    duration: Duration::ZERO,
    outcome: AttemptOutcome::Done,
    reach: Reach::Unknown,
    hint: Hint { wait: None, retry: None },
    wait: None,
    held: false,
};

impl Attempts {
    pub(super) fn push(&mut self, attempt: AttemptReport) {
        match self.few.get_mut(self.length) {
            Some(place) if self.many.is_empty() => {
                *place = attempt;
                self.length += 1;
            }
            _ => {
                if self.many.is_empty() {
                    self.many.extend(mem::replace(&mut self.few, [NONE; FEW]));
                }
                self.many.push(attempt);
            }
        }
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut AttemptReport> {
        if self.many.is_empty() { self.few[..self.length].last_mut() } else { self.many.last_mut() }
    }
}

impl Deref for Attempts {
    type Target = [AttemptReport];

    fn deref(&self) -> &[AttemptReport] {
        if self.many.is_empty() { &self.few[..self.length] } else { &self.many }
    }
}

impl Default for Attempts {
    fn default() -> Self {
        Attempts { few: [NONE; FEW], length: 0, many: Vec::new() }
    }
}

impl From<Vec<AttemptReport>> for Attempts {
    fn from(attempts: Vec<AttemptReport>) -> Self {
        Attempts { many: attempts, ..Self::default() }
    }
}

impl fmt::Debug for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&**self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_they_are_all_are_there_in_their_order() {
        let mut attempts = Attempts::default();
        assert_eq!((attempts.len(), attempts.last_mut()), (0, None));
        for number in 1..=9 {
            attempts.push(AttemptReport { number, ..NONE });
            let numbers: Vec<_> = attempts.iter().map(|attempt| attempt.number).collect();
            assert_eq!(numbers, (1..=number).collect::<Vec<_>>());
            attempts.last_mut().unwrap().held = true;
            assert!(attempts.last().unwrap().held);
        }
    }

    #[test]
    fn a_list_that_somebody_else_made_goes_on() {
        for length in 0..5 {
            let mut attempts = Attempts::from(vec![NONE; length]);
            assert_eq!(attempts.len(), length);
            attempts.push(AttemptReport { number: 7, ..NONE });
            assert_eq!((attempts.len(), attempts.last().map(|last| last.number)), (length + 1, Some(7)));
        }
    }
}
