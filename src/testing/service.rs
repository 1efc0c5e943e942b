//! A script without sockets.

use std::{
    collections::VecDeque,
    fmt,
    future::{Future, pending, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{Method, Request, Response, header};
use http_body::Body;
use tokio::time::{Sleep, sleep};

use super::{
    ReplyBody, Seen,
    answer::Answer,
    http1::{Framing, bodiless},
    mint,
    record::{Arrival, Record},
    reply::{Reply, Then, What},
    script::{Player, Readiness, Script},
    wire::frame,
};
use crate::{BoxError, retry::reading::as_the_client};

/// A script as a plain tower service, without sockets: for paused clocks. Its clones share the script's place and what
/// was seen.
///
/// It takes requests of any body, reads them as a server does, and answers as one does over HTTP/1.1, or over HTTP/2
/// where the reply is of HTTP/2. Delays and stalls are on tokio's clock, and need a runtime only where the script has
/// any.
///
/// A fault is **the very error that the client gives**: hyper's own, or hyper-util's for
/// [`Reply::not_connected`](super::Reply::not_connected). Nobody else can make them, so a real client is shown the
/// fault in memory. [`Fault::read`](crate::Fault::read) says of it what it says on the wire, what is provably unsent
/// included.
///
/// It keeps tower's contract: a call without readiness before it panics.
///
/// ```
/// use http::Request;
/// use http_body_util::Empty;
/// use redial::testing::{self, Reply};
/// use redial::{RetryLayer, StandardPolicy, Timeouts, Transient};
/// use std::time::Duration;
/// use tower::{Layer, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let service = testing::service([Reply::refused_stream(), Reply::stall(), Reply::ok("done")]);
///
/// let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(30) };
/// let client = RetryLayer::new(StandardPolicy::new("orders", timeouts, Transient::usual())?).layer(service.clone());
/// let response = client.oneshot(Request::get("/orders").body(Empty::<bytes::Bytes>::new())?).await?;
///
/// assert_eq!(response.status(), 200);
/// assert!(service.seen().sent(3).gaps()[1] >= Duration::from_secs(2));
/// # Ok(())
/// # }
/// ```
///
/// # Panics
///
/// A call without readiness, and one beyond an [`exact`](Script::exact) script.
pub fn service(script: impl Into<Script>) -> ScriptService {
    let script = script.into();
    let readiness = Arc::new(Mutex::new(script.readiness.iter().copied().collect()));
    ScriptService {
        player: Player::new(script),
        record: Record::new(),
        readiness,
        reused: Arc::default(),
        own: Own::Unasked,
    }
}

/// What [`service`] returns.
pub struct ScriptService {
    player: Player,
    record: Record,
    readiness: Arc<Mutex<VecDeque<Readiness>>>,
    /// The next request meets a connection that closes.
    reused: Arc<Mutex<bool>>,
    own: Own,
}

/// What one instance has of readiness.
enum Own {
    Unasked,
    Coming(Pin<Box<Sleep>>),
    Never,
    Ready,
}

impl ScriptService {
    /// What it has seen so far.
    pub fn seen(&self) -> Seen {
        self.record.seen()
    }

    /// Waits until it has seen enough, and says what.
    ///
    /// # Panics
    ///
    /// With what it did see, after 20 s (of tokio's clock) in vain.
    pub async fn until(&self, enough: impl FnMut(&Seen) -> bool) -> Seen {
        self.record.until(enough).await
    }
}

impl Clone for ScriptService {
    /// A clone is not ready, whatever this one is.
    fn clone(&self) -> Self {
        ScriptService {
            player: self.player.clone(),
            record: self.record.clone(),
            readiness: Arc::clone(&self.readiness),
            reused: Arc::clone(&self.reused),
            own: Own::Unasked,
        }
    }
}

impl fmt::Debug for ScriptService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptService").field("script", self.player.script()).finish_non_exhaustive()
    }
}

/// The future of a [`ScriptService`].
pub type ScriptFuture = Pin<Box<dyn Future<Output = Result<Response<ReplyBody>, BoxError>> + Send>>;

impl<B> tower_service::Service<Request<B>> for ScriptService
where
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<ReplyBody>;
    type Error = BoxError;
    type Future = ScriptFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if matches!(self.own, Own::Unasked) {
            let next = self.readiness.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            self.own = match next.unwrap_or(Readiness::Now) {
                Readiness::Now => Own::Ready,
                Readiness::After(time) => Own::Coming(Box::pin(sleep(time))),
                Readiness::Never => Own::Never,
                Readiness::Fails => return Poll::Ready(Err(NotReady.into())),
            };
        }
        match &mut self.own {
            Own::Coming(time) => {
                ready!(time.as_mut().poll(cx));
                self.own = Own::Ready;
                Poll::Ready(Ok(()))
            }
            Own::Ready => Poll::Ready(Ok(())),
            Own::Never | Own::Unasked => Poll::Pending,
        }
    }

    fn call(&mut self, request: Request<B>) -> ScriptFuture {
        assert!(
            matches!(std::mem::replace(&mut self.own, Own::Unasked), Own::Ready),
            "the service was called without having been made ready: `poll_ready` comes first, on the same instance"
        );
        if self.player.script().max_streams == Some(0) {
            return Box::pin(async move {
                let _waits_in_the_client = request;
                pending().await
            });
        }
        if std::mem::take(&mut *self.reused.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Box::pin(async { Err(mint::http1(b"", mint::End::Closed).into()) });
        }
        let (head, body) = request.into_parts();
        let arrival = self.record.arrived(0, &head);
        let Some(reply) = self.player.next(&head.method, head.uri.path()).cloned() else {
            self.record.change(|seen| seen.surplus += 1);
            panic!("a request came after the script had ended, saw {}", self.seen());
        };
        let reused = Arc::clone(&self.reused);
        Box::pin(play(reply, head.method, body, arrival, reused))
    }
}

async fn play<B>(
    reply: Reply,
    method: Method,
    body: B,
    mut arrival: Arrival,
    reused: Arc<Mutex<bool>>,
) -> Result<Response<ReplyBody>, BoxError>
where
    B: Body<Error: Into<BoxError>>,
{
    // Unread, it lives as long as the exchange.
    let mut body = pin!(body);
    if !reply.early && !matches!(reply.what, What::NotConnected) {
        read(body.as_mut(), &mut arrival).await.map_err(Into::into)?;
    }
    if reply.after > Duration::ZERO {
        sleep(reply.after).await;
    }
    let over_http2 = |what: &[u8]| {
        let goaway = reply.goaway.map(|(last, reason)| frame::goaway(last.id(1), reason.code()));
        Err(mint::http2(&[&goaway.unwrap_or_default(), what].concat()).into())
    };
    let left_out = reply.goaway.is_some_and(|(last, _)| last.id(1) == 0);
    let end = match &reply.what {
        _ if left_out => over_http2(&[]),
        What::Answer(answer) => {
            *reused.lock().unwrap_or_else(PoisonError::into_inner) = reply.then == Then::CloseOnReuse;
            Ok(respond(answer, &method))
        }
        What::Stall => pending().await,
        What::ResetStream(reason) => over_http2(&frame::encode(frame::RST_STREAM, 1, &reason.code().to_be_bytes())),
        What::Close | What::HalfHead if reply.goaway.is_some() => over_http2(&[]),
        What::Close => Err(mint::http1(b"", mint::End::Closed).into()),
        What::Reset => Err(mint::http1(b"", mint::End::Reset).into()),
        What::HalfHead => Err(mint::http1(b"HTTP/1.1 20", mint::End::Closed).into()),
        What::NotConnected => Err(mint::not_connected().into()),
        What::Error(make) => Err((make.0)()),
    };
    arrival.over();
    end
}

async fn read<B: Body>(mut body: Pin<&mut B>, arrival: &mut Arrival) -> Result<(), B::Error> {
    let mut trailers = None;
    while let Some(frame) = poll_fn(|cx| as_the_client(|| body.as_mut().poll_frame(cx))).await {
        match frame?.into_data() {
            Ok(data) => arrival.data(data),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    arrival.complete(trailers);
    Ok(())
}

fn respond(answer: &Answer, method: &Method) -> Response<ReplyBody> {
    let bodiless = method == Method::HEAD || bodiless(answer.status);
    let mut response = Response::new(if bodiless { ReplyBody::none() } else { ReplyBody::of(answer) });
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers.clone();
    if let Framing::Length(length) = Framing::of(answer) {
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
    response
}

/// Readiness failed, as the script says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotReady;

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not ready, says the script")
    }
}

impl std::error::Error for NotReady {}
