//! Whether the rest of a download is asked for, when, and how.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_service::Service;

use super::{
    NotResumed, Settings,
    download::Download,
    given_up::{EndedEarly, Why},
    request::Asked,
};
use crate::{
    BoxError, Deadline, Error,
    deadline::later,
    fault::{Fault, FaultKind},
    observe,
    timeout::{Expired, Timer},
};

/// What it takes to ask for the rest.
pub(super) struct Resumable<S> {
    pub(super) download: Download,
    asked: Asked,
    service: S,
    settings: Arc<Settings>,
    pub(super) resumes: u32,
    /// Resumes that nothing came of so far, and the last wait before one.
    in_vain: u32,
    waited: Option<Duration>,
    /// What broke the body, while the rest is asked for.
    pub(super) broken: Option<BoxError>,
}

pin_project! {
    // A request for the rest, and the wait before it.
    pub(super) struct Asking<F> {
        #[pin]
        timer: Timer,
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        Wait { until: Instant },
        Ready,
        Call { #[pin] response: F },
    }
}

impl<F> Asking<F> {
    pub(super) fn at(until: Instant) -> Self {
        Asking { timer: Timer::new(), state: State::Wait { until } }
    }
}

impl<S> Resumable<S> {
    pub(super) fn new(download: Download, asked: Asked, service: S, settings: Arc<Settings>) -> Self {
        let (resumes, in_vain, waited, broken) = (0, 0, None, None);
        Resumable { download, asked, service, settings, resumes, in_vain, waited, broken }
    }

    fn deadline(&self) -> Option<Instant> {
        self.asked.deadline.map(Deadline::instant)
    }

    /// When to ask for the rest; or why not.
    pub(super) fn resume_at(&mut self, error: &BoxError) -> Result<Instant, Why> {
        if self.download.missing() == 0 {
            return Err(Why::Complete);
        }
        if !passes(error) {
            return Err(Why::Final);
        }
        if self.resumes >= self.settings.resumes {
            return Err(Why::Spent);
        }
        let wait = self.settings.backoff.wait(self.in_vain, self.waited, &mut rand::rng());
        let at = later(Instant::now(), wait);
        if self.deadline().is_some_and(|deadline| at >= deadline) {
            return Err(Why::NoTime);
        }
        self.resumes += 1;
        self.in_vain += 1;
        self.waited = Some(wait);
        observe::resuming(
            &self.asked.head.uri,
            self.resumes,
            self.download.next,
            Fault::of_broken_body(&**error),
            wait,
        );
        Ok(at)
    }

    /// So many bytes have come.
    pub(super) fn take(&mut self, size: u64) -> Result<(), Why> {
        if size > 0 {
            (self.in_vain, self.waited) = (0, None);
        }
        self.download.take(size)
    }

    /// The end of the body, as the caller sees it.
    pub(super) fn give_up(&self, why: Why, error: BoxError) -> Error {
        Error::body(NotResumed::new(self.resumes, why, error).into())
    }

    pub(super) fn poll_rest<B, RB>(
        &mut self,
        asking: Pin<&mut Asking<S::Future>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<RB>, Why>>
    where
        S: Service<Request<B>, Response = Response<RB>>,
        S::Error: Into<BoxError>,
        B: Default,
        RB: Body,
    {
        let mut asking = asking.project();
        loop {
            match asking.state.as_mut().project() {
                StateProj::Wait { until } => {
                    let until = *until;
                    ready!(asking.timer.as_mut().poll_until(cx, until));
                    asking.state.set(State::Ready);
                }
                StateProj::Ready => {
                    match self.service.poll_ready(cx) {
                        Poll::Ready(Ok(())) => {}
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(failed(error))),
                        Poll::Pending => {
                            let Some(deadline) = self.deadline() else { return Poll::Pending };
                            ready!(asking.timer.as_mut().poll_until(cx, deadline));
                            return Poll::Ready(Err(Why::NoTime));
                        }
                    }
                    let Download { next, end, etag, .. } = &self.download;
                    let request = self.asked.again(*next, end.saturating_sub(1), etag);
                    let response = self.service.call(request);
                    asking.state.set(State::Call { response });
                }
                StateProj::Call { response } => {
                    // Whoever stands below may have no timeout.
                    let rest = match self.deadline() {
                        None => Ok(ready!(response.poll(cx))),
                        Some(deadline) => ready!(asking.timer.as_mut().limit(cx, response, || deadline)),
                    };
                    let rest = rest.map_err(|Expired| Why::NoTime)?.map_err(failed)?;
                    return Poll::Ready(self.download.goes_on_with(&rest).map(|()| rest));
                }
            }
        }
    }
}

fn failed(error: impl Into<BoxError>) -> Why {
    Why::Failed(error.into().to_string())
}

/// Whether what broke a body is known to pass.
fn passes(error: &BoxError) -> bool {
    let mut links = crate::error::chain(&**error).filter_map(|link| link.downcast_ref::<Error>());
    if links.any(Error::ends_the_call) {
        return false;
    }
    let fault = Fault::of_broken_body(&**error);
    error.is::<EndedEarly>() || fault.kind() != FaultKind::Unclassified && !fault.is_permanent()
}

impl EndedEarly {
    pub(super) fn of<S>(resumable: &Resumable<S>) -> Self {
        EndedEarly { missing: resumable.download.missing() }
    }
}
