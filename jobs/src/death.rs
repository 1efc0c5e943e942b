//! A job that was given up.

use crate::{Burial, Claimed, DeadReason, JobId};

/// A job that has become DEAD: a person must look. For [`Runner::on_dead`](crate::Runner::on_dead).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Death {
    /// Its number.
    pub id: JobId,
    /// Its type.
    pub job_type: String,
    /// What it was for.
    pub target: String,
    /// The provider that it depends on.
    pub provider: Option<String>,
    /// Why it was given up.
    pub reason: DeadReason,
    /// What happened last, in words. `None` where a sweep gave it up: its row says it.
    pub error: Option<String>,
}

impl Death {
    pub(crate) fn of(job: &Claimed, reason: DeadReason, error: &str) -> Self {
        Self {
            id: job.lease.id,
            job_type: job.job_type.clone(),
            target: job.target.clone(),
            provider: job.provider.clone(),
            reason,
            error: Some(error.to_owned()),
        }
    }

    pub(crate) fn buried(burial: &Burial) -> Self {
        Self {
            id: burial.job.id,
            job_type: burial.job.job_type.clone(),
            target: burial.job.target.clone(),
            provider: burial.job.provider.clone(),
            reason: burial.reason,
            error: None,
        }
    }
}
