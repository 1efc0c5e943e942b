//! The response body, and what is asked for when it breaks.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Buf;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::{
    NotResumed, Settings,
    asking::{Asking, Resumable},
    download::Download,
    given_up::{EndedEarly, Why},
    request::Asked,
};
use crate::{BoxError, Error};

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

impl<S, B, RB> ResumeBody<S, B, RB>
where
    S: Service<Request<B>>,
    RB: Body,
{
    pub(super) fn of(response: Response<RB>, again: Option<(S, Asked, Arc<Settings>)>) -> Response<Self> {
        let download = again.ok_or(Why::NotAsked).and_then(|(service, asked, settings)| {
            let download = Download::begin(&response, asked.for_a_range())?;
            Ok(Box::new(Resumable::new(download, asked, service, settings)))
        });
        response.map(|body| ResumeBody { body: Some(body), download, asking: None, over: false })
    }
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
                    *this.asking = Some(Box::pin(Asking::at(until)));
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
