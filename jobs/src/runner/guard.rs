//! The caller's code, held to its limits.

use std::{any::Any, future::Future, time::Duration};

use redial::Deadline;
use tokio::{
    task::{JoinError, JoinHandle},
    time::{sleep, sleep_until},
};

use super::{desk::Run, signal::Signal};
use crate::{Failure, FailureClass, observe};

/// How a run ended.
pub(super) enum End {
    Done,
    /// It was done before: verified, not run.
    DoneBefore,
    Failed(Failure),
    Snoozed(Duration),
    /// Cancelled by a shutdown.
    Cancelled,
    /// Cancelled, or not begun, since somebody else has the job.
    Lost,
    /// Cancelled, but it runs on: it blocks its thread.
    Hung,
}

/// Runs this in a task of its own until it ends, panics, runs too long, or has lost its lease.
///
/// # Errors
///
/// It did not end by itself: how it ended.
pub(super) async fn guard<T: Send + 'static>(
    run: &Run,
    deadline: Deadline,
    lease: Duration,
    cancel: &Signal,
    code: impl Future<Output = T> + Send + 'static,
) -> Result<T, End> {
    let mut task = AbortOnDrop(tokio::spawn(observe::in_span(&run.job, code)));
    let margin = lease / 8;
    tokio::select! {
        biased;
        ended = &mut task.0 => ended_with(ended),
        () = sleep_until(deadline.instant()) => {
            // It is ours until the lease ends, which gives it time to end.
            run.hold.renew_no_more();
            let reason = "ran longer than its type's `MAX_RUNTIME`, and was cancelled";
            let failure = Failure::new(FailureClass::Timeout, reason).unknown(true);
            stop(task, run.hold.ended(), End::Failed(failure)).await
        }
        () = run.hold.lost(margin) => {
            // The handler was told, and has a moment to end by itself. What it says is written as always: where the lease
            // is lost, the store refuses it.
            tokio::select! {
                ended = &mut task.0 => ended_with(ended),
                () = sleep(margin) => stop(task, std::future::ready(()), End::Lost).await,
            }
        }
        () = cancel.raised() => stop(task, run.hold.ended(), End::Cancelled).await,
    }
}

/// Cancels it. Whoever blocks his thread cannot be: then nobody else may have the job while its lease lasts.
async fn stop<T>(mut task: AbortOnDrop<T>, patience: impl Future<Output = ()>, end: End) -> Result<T, End> {
    task.0.abort();
    tokio::select! {
        biased;
        ended = &mut task.0 => ended.map_err(|_| end),
        () = patience => match end {
            End::Lost => Err(End::Lost),
            _ => Err(End::Hung),
        },
    }
}

fn ended_with<T>(ended: Result<T, JoinError>) -> Result<T, End> {
    ended.map_err(|error| match error.try_into_panic() {
        Ok(panic) => {
            let reason = format!("panicked: {}", panic_text(&*panic));
            End::Failed(Failure::new(FailureClass::Panic, reason).unknown(true))
        }
        // The runtime is shutting down.
        Err(_) => End::Cancelled,
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied()).unwrap_or("no text")
}

/// A task that ends with what waits for it.
pub(super) struct AbortOnDrop<T>(pub(super) JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
