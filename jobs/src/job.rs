//! What a job is.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use http::Extensions;
use serde::{Serialize, de::DeserializeOwned};

use crate::{BoxError, JobId};

/// Work for a target, that is remembered until it is done.
///
/// The value itself is what is stored, as JSON: enough to do the work later, on another machine. Keep it small, and keep
/// secrets out of it.
///
/// ```
/// use std::time::Duration;
/// use redial_jobs::Job;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct CommitTil {
///     user: u64,
/// }
///
/// impl Job for CommitTil {
///     const TYPE: &'static str = "commit-til";
///     const MAX_RUNTIME: Duration = Duration::from_secs(120);
///     const PROVIDER: Option<&'static str> = Some("github");
///
///     fn target(&self) -> String {
///         format!("user {}", self.user)
///     }
/// }
/// ```
pub trait Job: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Its name in the table, 1 to 100 bytes. It outlives releases: a job stored under a name that nobody handles any more
    /// waits, and is reported by a WARN once it has waited for [`Recovery::stuck_after`](crate::Recovery::stuck_after). It
    /// is DEAD only where [`Runner::refuse_unknown_types`](crate::Runner::refuse_unknown_types) says so.
    const TYPE: &'static str;

    /// How long its handler may run, more than zero. A handler past it is cancelled and its job FAILED; one that hangs and
    /// cannot be cancelled loses its lease, and is a ghost although its process lives (J5).
    ///
    /// There is no default: work without a limit cannot be told from work that hangs.
    const MAX_RUNTIME: Duration;

    /// When a second job for the same target is not enqueued (J6).
    const UNIQUE: Unique = Unique::Active;

    /// The provider of the contract that this work depends on: what is limited, tried out and held together.
    const PROVIDER: Option<&'static str> = None;

    /// For how long the provider honours an idempotency key, counted from when a job of the chain was first claimed: before
    /// that none was sent. A chain older than that is verified before it is repeated (J11); without a
    /// [`verify`](Self::verify) it is DEAD, until a person revives it. `None`: for ever.
    const KEY_VALID_FOR: Option<Duration> = None;

    /// What the work is for, such as a user or a file, 1 to 500 bytes. Of the same type, at most one job is active for it.
    fn target(&self) -> String;

    /// Looks whether the work is done already, without doing it. Asked where an earlier attempt may have taken effect and
    /// nothing says so (J13): before the work is repeated, and before the job is closed as a business failure.
    ///
    /// [`Verified::Unsupported`] by default: the work is then repeated, under the same idempotency keys.
    ///
    /// # Errors
    ///
    /// An error says that it could not be found out: the job fails, and recovery asks again.
    fn verify(&self, cx: &VerifyContext) -> impl Future<Output = Result<Verified, BoxError>> + Send {
        let _ = cx;
        async { Ok(Verified::Unsupported) }
    }
}

/// When a second job for the same target is not enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unique {
    /// While one is PENDING or PROCESSING.
    Active,
    /// While one is active, and for ever once one has COMPLETED.
    ActiveOrCompleted,
    /// While one is active, and for this long after one has COMPLETED.
    Within(Duration),
}

/// What [`Job::verify`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verified {
    /// The work is done: the job is COMPLETED without running.
    Done,
    /// It is not done: doing it is safe.
    NotDone,
    /// Nobody can tell.
    Unsupported,
}

/// What [`Job::verify`] may look at.
#[derive(Clone)]
pub struct VerifyContext {
    id: JobId,
    shared: Arc<Extensions>,
}

impl VerifyContext {
    /// Of this job, with what the runner shares, such as a client.
    pub fn new(id: JobId, shared: Arc<Extensions>) -> Self {
        Self { id, shared }
    }

    /// The job that asks.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// The shared value of this type, such as a client. `None`: the runner was given none.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.shared.get()
    }
}

impl fmt::Debug for VerifyContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyContext").field("id", &self.id).finish_non_exhaustive()
    }
}
