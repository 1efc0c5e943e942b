//! What a block knows of its attempt.

use crate::Deadline;

/// One attempt of a block, handed to it by [`redial::retry`](fn@crate::retry).
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    pub(super) number: u32,
    pub(super) ends: Deadline,
    pub(super) earlier_unknown: bool,
}

impl Attempt {
    /// Its number; the first is 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// By when it must end: then it is dropped.
    pub fn deadline(&self) -> Deadline {
        self.ends
    }

    /// Whether an earlier attempt may have taken effect: look before doing the work once more.
    pub fn earlier_unknown(&self) -> bool {
        self.earlier_unknown
    }
}
