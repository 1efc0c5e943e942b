//! How long ended jobs are kept.

use std::time::Duration;

use crate::Error;

/// How long ended jobs are kept, by state, counted from their end. Nothing is deleted that still counts:
///
/// - a COMPLETED job while its type's [`Unique`](crate::Unique) asks for it, or while an older failure of its target is
///   kept, which would count again without it;
/// - a FAILED job while recovery has still to look at it, or while it counts against its target: a later job exists, and
///   none of the later ones has COMPLETED or was revived;
/// - a job by which its target was revived, while an older failure is kept, which would count again without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// For COMPLETED jobs. A week by default; `None`: for ever.
    pub completed: Option<Duration>,
    /// For FAILED jobs. 30 days by default; `None`: for ever.
    pub failed: Option<Duration>,
    /// For DEAD jobs. `None`, for ever, by default: somebody must look.
    pub dead: Option<Duration>,
    /// How many are deleted in one pass: 1000 by default, at least 1.
    pub batch: u32,
}

impl Default for Retention {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 60 * 60);
        Self { completed: Some(7 * day), failed: Some(30 * day), dead: None, batch: 1000 }
    }
}

impl Retention {
    /// Whether anything would be deleted by these settings.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.batch {
            0 => Err(Error::invalid("Retention::batch is 0: it must be 1 or more, or nothing is ever deleted")),
            _ => Ok(()),
        }
    }
}
