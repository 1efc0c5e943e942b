//! What a handler knows of the job that it does.

use std::{fmt, sync::Arc};

use http::{Extensions, HeaderValue};
use redial::Deadline;
use uuid::Uuid;

use super::{hold::Hold, signal::Signal};
use crate::{Claimed, JobId, VerifyContext};

/// What a handler knows of the job that it does. Cheap to clone.
#[derive(Clone)]
pub struct JobContext(Arc<Inner>);

struct Inner {
    job: Arc<Claimed>,
    hold: Arc<Hold>,
    deadline: Deadline,
    shared: Arc<Extensions>,
    stopping: Signal,
}

impl JobContext {
    pub(super) fn new(
        job: Arc<Claimed>,
        hold: Arc<Hold>,
        deadline: Deadline,
        shared: Arc<Extensions>,
        stopping: Signal,
    ) -> Self {
        Self(Arc::new(Inner { job, hold, deadline, shared, stopping }))
    }

    /// The job. A successor has its own.
    pub fn id(&self) -> JobId {
        self.0.job.lease.id
    }

    /// The first job of its chain: the same for every successor.
    pub fn root(&self) -> JobId {
        self.0.job.root
    }

    /// What it is for.
    pub fn target(&self) -> &str {
        &self.0.job.target
    }

    /// Which of its chain it is; the first is 1.
    pub fn attempt(&self) -> u32 {
        self.0.job.attempt
    }

    /// How often it was put off without counting.
    pub fn snoozes(&self) -> u32 {
        self.0.job.snoozes
    }

    /// Whether an earlier run of its chain may have taken effect without saying so.
    pub fn unknown_before(&self) -> bool {
        self.0.job.unknown_before
    }

    /// The idempotency key of this step: the same on every attempt of HTTP, in every run and every successor of this job,
    /// and no other step's (J11). Put it into the header `Idempotency-Key`, where a policy of `redial` reads it as
    /// evidence that a repeat is safe.
    ///
    /// The value is a string of structured fields, a UUID in its quotes, as the IETF's draft has it
    /// ([draft-ietf-httpapi-idempotency-key-header-07]); [`raw_key`](Self::raw_key) is without them.
    ///
    /// A key stands for one request. Where what is sent is no function of the job alone, such as a text that a model
    /// writes anew each time, a repeat would send another body under the same key, which servers refuse: store the text
    /// first, or take [`key_for`](Self::key_for).
    ///
    /// [draft-ietf-httpapi-idempotency-key-header-07]: https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07
    pub fn key(&self, step: &str) -> HeaderValue {
        header(&format!("\"{}\"", self.uuid(step.as_bytes())))
    }

    /// [`key`](Self::key) without quotes: what many vendors took before there was a draft. Their documentation says which.
    pub fn raw_key(&self, step: &str) -> HeaderValue {
        header(&self.uuid(step.as_bytes()).to_string())
    }

    /// A key for this step with this body: another body has another key. It guards a repeat of the same bytes only; against
    /// doing the work twice with different ones, [`Job::verify`](crate::Job::verify) does.
    pub fn key_for(&self, step: &str, body: &[u8]) -> HeaderValue {
        // In front a byte that no step of `key` can begin with, since it is no text; then a length, so that no step and body
        // together read as another pair.
        let name = [&[0xFF][..], &step.len().to_be_bytes(), step.as_bytes(), body].concat();
        header(&format!("\"{}\"", self.uuid(&name)))
    }

    fn uuid(&self, name: &[u8]) -> Uuid {
        Uuid::new_v5(&self.0.job.chain, name)
    }

    /// When this run is cancelled: put it into the extensions of every request, so that no call outlasts it.
    pub fn deadline(&self) -> Deadline {
        self.0.deadline
    }

    /// The trace context that the job was enqueued with, such as a `traceparent`.
    pub fn trace(&self) -> Option<&str> {
        self.0.job.trace.as_deref()
    }

    /// The value of this type that the runner shares ([`Runner::share`](crate::Runner::share)), such as a client.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.shared.get()
    }

    /// Ends when the job is no longer this run's. The lease is lost: somebody else has the job by now, or may have, what
    /// this run writes is dropped, and the handler is cancelled soon after. Or the run is over, such as one that was
    /// cancelled since it lasted too long or since the runner shuts down, and its row is about to say so.
    ///
    /// For work that outlives a cancelled handler, such as a blocking task: it must end at once, since another run may
    /// begin.
    pub async fn lost(&self) {
        self.0.hold.over().await;
    }

    /// Whether the job is no longer this run's, as [`lost`](Self::lost) tells it.
    pub fn is_lost(&self) -> bool {
        self.0.hold.is_over()
    }

    /// Ends when the runner shuts down: what has not ended within its grace is cancelled, and the job given back.
    pub async fn stopping(&self) {
        self.0.stopping.raised().await;
    }

    pub(super) fn verify(&self) -> VerifyContext {
        VerifyContext::new(self.id(), self.0.shared.clone())
    }
}

fn header(text: &str) -> HeaderValue {
    // Hexadecimal digits, hyphens and quotes may always stand in a header.
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

impl fmt::Debug for JobContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobContext").field("job", &self.0.job).field("lost", &self.is_lost()).finish_non_exhaustive()
    }
}
