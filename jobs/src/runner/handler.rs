//! A handler without its types.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use serde_json::error::Category;

use super::context::JobContext;
use crate::{BoxError, Job, Verified};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Run = dyn Fn(&str, JobContext) -> Result<Boxed<Result<(), BoxError>>, Undecodable> + Send + Sync;
type Verify = fn(&str, JobContext) -> Result<Boxed<Result<Verified, BoxError>>, Undecodable>;

/// What is done with the jobs of one type.
#[derive(Clone)]
pub(super) struct Handler {
    pub(super) max_runtime: Duration,
    pub(super) key_valid_for: Option<Duration>,
    run: Arc<Run>,
    verify: Verify,
}

impl Handler {
    pub(super) fn of<J, F, Fut, E>(handler: F) -> Self
    where
        J: Job,
        F: Fn(J, JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        const { assert!(!J::MAX_RUNTIME.is_zero(), "a job's MAX_RUNTIME must be more than zero") };
        let run = move |payload: &str, cx: JobContext| {
            let running = handler(decode::<J>(payload)?, cx);
            let boxed: Boxed<_> = Box::pin(async move { running.await.map_err(Into::into) });
            Ok(boxed)
        };
        Self {
            max_runtime: J::MAX_RUNTIME,
            key_valid_for: J::KEY_VALID_FOR,
            run: Arc::new(run),
            verify: |payload, cx| {
                let job = decode::<J>(payload)?;
                Ok(Box::pin(async move { job.verify(&cx.verify()).await }))
            },
        }
    }

    /// Does the work.
    pub(super) fn run(&self, payload: &str, cx: JobContext) -> Result<Boxed<Result<(), BoxError>>, Undecodable> {
        (self.run)(payload, cx)
    }

    /// Looks whether it is done.
    pub(super) fn verify(
        &self,
        payload: &str,
        cx: JobContext,
    ) -> Result<Boxed<Result<Verified, BoxError>>, Undecodable> {
        (self.verify)(payload, cx)
    }
}

fn decode<J: Job>(payload: &str) -> Result<J, Undecodable> {
    serde_json::from_str(payload).map_err(|error| Undecodable::of(J::TYPE, &error))
}

/// The payload is not one of its type. Says where, and nothing of what stands there: that may be personal.
#[derive(Debug)]
pub(super) struct Undecodable(pub(super) String);

impl Undecodable {
    fn of(job_type: &str, error: &serde_json::Error) -> Self {
        let what = match error.classify() {
            Category::Data => "a field is missing or has another type",
            Category::Eof => "it is cut off",
            Category::Syntax | Category::Io => "it is not JSON",
        };
        let (line, column) = (error.line(), error.column());
        Self(format!("the payload is no `{job_type}`: {what}, line {line} column {column}"))
    }
}
