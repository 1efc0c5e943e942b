//! What apalis' worker calls for each task.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use apalis_core::task::Task;
use tower::Service;

use super::desk::{Desk, Run};
use crate::JobStore;

/// Never fails: how a job ended is written by the desk, with what its error said.
pub(super) struct Worker<S>(pub(super) Arc<Desk<S>>);

impl<S: JobStore> Service<Task<Run>> for Worker<S> {
    type Response = ();
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<(), Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, task: Task<Run>) -> Self::Future {
        let desk = self.0.clone();
        Box::pin(async move {
            desk.work(task.args).await;
            Ok(())
        })
    }
}
