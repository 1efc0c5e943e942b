//! The response body, and what is asked for when it breaks.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
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
    timeout::Timer,
};

pin_project! {
    /// A response body that goes on where it broke.
    ///
    /// Its error is [`redial::Error`](crate::Error); what broke the body is untouched in its source chain, beneath
    /// [`NotResumed`].
    pub struct ResumeBody<S, B, RB>
    where
        S: Service<Request<B>>,
    {
        // `None` while the rest is asked for.
        #[pin]
        body: Option<RB>,
        download: Result<Box<Resumable<S>>, Why>,
        // Boxed, so that readers may move the body, as most ask for; made only when it breaks.
        asking: Option<Pin<Box<Asking<S::Future>>>>,
        over: bool,
    }
}

/// What it takes to ask for the rest.
struct Resumable<S> {
    download: Download,
    asked: Asked,
    service: S,
    settings: Arc<Settings>,
    resumes: u32,
    /// Resumes that nothing came of so far, and the last wait before one.
    in_vain: u32,
    waited: Option<std::time::Duration>,
    /// What broke the body, while the rest is asked for.
    broken: Option<BoxError>,
}

pin_project! {
    struct Asking<F> {
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

impl<S, B, RB> ResumeBody<S, B, RB>
where
    S: Service<Request<B>>,
    RB: Body,
{
    pub(super) fn of(response: Response<RB>, again: Option<(S, Asked, Arc<Settings>)>) -> Response<Self> {
        let download = again.ok_or(Why::NotAsked).and_then(|(service, asked, settings)| {
            let download = Download::begin(&response)?;
            let (resumes, in_vain, waited, broken) = (0, 0, None, None);
            Ok(Box::new(Resumable { download, asked, service, settings, resumes, in_vain, waited, broken }))
        });
        response.map(|body| ResumeBody { body: Some(body), download, asking: None, over: false })
    }
}

impl<S> Resumable<S> {
    fn deadline(&self) -> Option<Instant> {
        self.asked.head.extensions.get::<Deadline>().map(|deadline| deadline.instant())
    }

    /// When to ask for the rest; or why not.
    fn resume_at(&mut self, error: &BoxError) -> Result<Instant, Why> {
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
    fn take(&mut self, size: u64) -> Result<(), Why> {
        if size > 0 {
            (self.in_vain, self.waited) = (0, None);
        }
        self.download.take(size)
    }

    /// The end of the body, as the caller sees it.
    fn give_up(&self, why: Why, error: BoxError) -> Error {
        Error::body(NotResumed::new(self.resumes, why, error).into())
    }

    fn poll_rest<B, RB>(
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
                    ready!(asking.timer.as_mut().poll_until(cx, || until));
                    asking.state.set(State::Ready);
                }
                StateProj::Ready => {
                    match self.service.poll_ready(cx) {
                        Poll::Ready(Ok(())) => asking.timer.as_mut().disarm(),
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(failed(error))),
                        Poll::Pending => {
                            let Some(deadline) = self.deadline() else { return Poll::Pending };
                            ready!(asking.timer.as_mut().poll_until(cx, || deadline));
                            return Poll::Ready(Err(Why::NoTime));
                        }
                    }
                    let Download { next, end, etag, .. } = &self.download;
                    let request = self.asked.again(*next, end.saturating_sub(1), etag);
                    let response = self.service.call(request);
                    asking.state.set(State::Call { response });
                }
                StateProj::Call { response } => {
                    let rest = ready!(response.poll(cx)).map_err(failed)?;
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

impl<S, B, RB> Body for ResumeBody<S, B, RB>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    B: Default,
    RB: Body,
    RB::Error: Into<BoxError>,
{
    type Data = RB::Data;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<RB::Data>, Error>>> {
        let mut this = self.project();
        if *this.over {
            return Poll::Ready(None);
        }
        let resumable = match this.download {
            Ok(resumable) => resumable,
            Err(why) => {
                let Some(body) = this.body.as_pin_mut() else { return Poll::Ready(None) };
                let frame = ready!(body.poll_frame(cx));
                return Poll::Ready(frame.map(|frame| frame.map_err(|error| unresumable(why, error.into()))));
            }
        };
        loop {
            if let Some(asking) = this.asking {
                let rest = ready!(resumable.poll_rest(asking.as_mut(), cx));
                *this.asking = None;
                match rest {
                    Ok(rest) => {
                        resumable.broken = None;
                        this.body.set(Some(rest.into_body()));
                    }
                    Err(why) => {
                        *this.over = true;
                        let broken = resumable.broken.take().unwrap_or_else(|| EndedEarly::of(resumable).into());
                        return Poll::Ready(Some(Err(resumable.give_up(why, broken))));
                    }
                }
            }
            let Some(body) = this.body.as_mut().as_pin_mut() else { return Poll::Ready(None) };
            let broken: BoxError = match ready!(body.poll_frame(cx)) {
                Some(Ok(frame)) => match frame.data_ref().map(|data| data.remaining() as u64) {
                    Some(size) => match resumable.take(size) {
                        Ok(()) => return Poll::Ready(Some(Ok(frame))),
                        Err(why) => {
                            *this.over = true;
                            this.body.set(None);
                            let error = resumable.give_up(why, EndedEarly::of(resumable).into());
                            return Poll::Ready(Some(Err(error)));
                        }
                    },
                    None if resumable.download.missing() == 0 => return Poll::Ready(Some(Ok(frame))),
                    // Trailers before the end.
                    None => EndedEarly::of(resumable).into(),
                },
                None if resumable.download.missing() == 0 => {
                    *this.over = true;
                    return Poll::Ready(None);
                }
                None => EndedEarly::of(resumable).into(),
                Some(Err(error)) => error.into(),
            };
            // What is left of its connection is let go before another is asked for.
            this.body.set(None);
            match resumable.resume_at(&broken) {
                Ok(until) => {
                    resumable.broken = Some(broken);
                    *this.asking = Some(Box::pin(Asking { timer: Timer::new(), state: State::Wait { until } }));
                }
                Err(why) => {
                    *this.over = true;
                    return Poll::Ready(Some(Err(resumable.give_up(why, broken))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        if self.over {
            return true;
        }
        let inner_over = self.body.as_ref().is_some_and(Body::is_end_stream);
        match &self.download {
            Ok(resumable) => resumable.download.missing() == 0 && inner_over,
            Err(_) => inner_over,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.download {
            _ if self.over => SizeHint::with_exact(0),
            Ok(resumable) => SizeHint::with_exact(resumable.download.missing()),
            Err(_) => self.body.as_ref().map_or_else(SizeHint::default, Body::size_hint),
        }
    }
}

/// The error of a body that was never to be resumed.
fn unresumable(why: &mut Why, error: BoxError) -> Error {
    match std::mem::replace(why, Why::NotAsked) {
        Why::NotAsked => Error::body(error),
        why => Error::body(NotResumed::new(0, why, error).into()),
    }
}

impl EndedEarly {
    fn of<S>(resumable: &Resumable<S>) -> Self {
        EndedEarly { missing: resumable.download.missing() }
    }
}

impl<S, B, RB> fmt::Debug for ResumeBody<S, B, RB>
where
    S: Service<Request<B>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resumable = self.download.as_ref().ok();
        f.debug_struct("ResumeBody")
            .field("download", &resumable.map(|resumable| &resumable.download))
            .field("resumes", &resumable.map_or(0, |resumable| resumable.resumes))
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}
