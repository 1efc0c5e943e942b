//! `BufferResponseLayer`: a body that breaks is a failed attempt.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use redial::{
    BoxError, BufferResponseLayer, FaultKind, Reach, RetryLayer, StopReason, TimeoutLayer,
    layers::BufferedBody,
    retry::AttemptOutcome,
    testing::{Reply, ReplyBody, ScriptService, Server, service},
};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

use crate::{
    get, paused, post, read,
    support::{WIRES, Wire, attempts, hyper_client, noise, policy, soon},
};

const LIMIT: usize = 1000;

/// Ten bytes are promised and five come, then this.
fn half(end: impl Fn(Reply) -> Reply) -> Reply {
    end(Reply::ok("01234").header("content-length", "10"))
}

async fn call(
    server: &ScriptService,
    request: Request<Full<Bytes>>,
) -> Result<Response<redial::AnswerBody<BufferedBody<ReplyBody>>>, redial::Error> {
    ServiceBuilder::new()
        .layer(RetryLayer::new(paused().build().unwrap()))
        .layer(BufferResponseLayer::new(LIMIT))
        .service(server.clone())
        .oneshot(request)
        .await
}

#[tokio::test(start_paused = true)]
async fn a_get_whose_body_breaks_is_repeated() {
    for (reply, name) in [
        (half(Reply::close_within), "closed"),
        (half(Reply::reset_within), "reset"),
        (half(Reply::stall_within), "timeout"),
    ] {
        let server = service([reply, Reply::ok("0123456789")]);
        let response = call(&server, get("/")).await.unwrap();
        let report = response.extensions().get::<redial::CallReport>().unwrap().clone();
        assert_eq!(report.attempts()[0].outcome.to_string(), name);
        assert_eq!(report.attempts()[0].reach, Reach::Unknown, "the head had arrived");
        assert_eq!(read(response.into_body()).await.unwrap(), "0123456789");
        server.seen().sent(2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_post_whose_body_breaks_is_not_repeated_without_evidence() {
    let server = service([half(Reply::reset_within), Reply::ok("0123456789")]);
    let error = call(&server, post("/")).await.unwrap_err();
    assert_eq!(error.stop(), Some(StopReason::NoEvidence));
    assert!(error.report().unwrap().outcome_unknown());
    assert_eq!(error.fault().unwrap().kind(), FaultKind::Reset);
    assert!(error.find_source::<hyper::Error>().is_some(), "the client's own error is in the chain");
    server.seen().sent(1);

    let server = service([half(Reply::reset_within), Reply::ok("0123456789")]);
    let mut keyed = post("/");
    keyed.headers_mut().insert("idempotency-key", "\"k\"".parse().unwrap());
    assert_eq!(call(&server, keyed).await.unwrap().status(), 200);
    server.seen().sent(2);
}

/// A proof of "never sent" passes through unharmed, and a broken body never is one.
#[tokio::test(start_paused = true)]
async fn what_the_client_proves_is_still_proved() {
    for reply in [Reply::not_connected(), Reply::refused_stream()] {
        let server = service([reply, Reply::ok("done")]);
        let response = call(&server, post("/")).await.unwrap();
        assert_eq!(attempts(&response), 2);
        let report = response.extensions().get::<redial::CallReport>().unwrap();
        assert_eq!(report.attempts()[0].reach, Reach::NotSent);
    }
    let left_out = Reply::goaway(redial::testing::LastStream::Before, redial::testing::Reason::NoError);
    let server = service([left_out, Reply::ok("done")]);
    assert_eq!(call(&server, post("/")).await.unwrap().status(), 200, "the stream's own GOAWAY is a proof");

    let refused_within = half(|reply| reply.reset_stream_within(redial::testing::Reason::RefusedStream));
    let server = service([refused_within, Reply::ok("0123456789")]);
    let error = call(&server, post("/")).await.unwrap_err();
    assert_eq!(error.stop(), Some(StopReason::NoEvidence), "processed, whatever it says");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_fails_every_time_is_the_call_s_error() {
    let server = service([half(Reply::close_within)]);
    let error = call(&server, get("/")).await.unwrap_err();
    assert!(error.is_exhausted() && !error.is_connect(), "{error}");
    assert!(
        error
            .report()
            .unwrap()
            .attempts()
            .iter()
            .all(|attempt| attempt.outcome == AttemptOutcome::Fault(FaultKind::Closed))
    );
    server.seen().sent(3);
}

#[tokio::test(start_paused = true)]
async fn a_silence_below_is_a_timeout_that_is_repeated() {
    let server = service([half(Reply::stall_within), Reply::ok("0123456789")]);
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(paused().build().unwrap()))
        .layer(BufferResponseLayer::new(LIMIT))
        .layer(TimeoutLayer::new().body_idle(Duration::from_millis(300)))
        .service(server.clone());
    let response = client.oneshot(get("/")).await.unwrap();
    assert_eq!(attempts(&response), 2);
    assert_eq!(server.seen().gaps(), [Duration::from_millis(300 + 100)]);
}

#[tokio::test(start_paused = true)]
async fn over_the_limit_it_streams_on() {
    // Unknown size: begun, and what was read comes first.
    let long = noise(3 * LIMIT);
    let chunks = |reply: Reply| (0..3).fold(reply, |reply, at| reply.body(long.slice(at * LIMIT..(at + 1) * LIMIT)));
    let server = service([chunks(Reply::ok("")).pause(Duration::from_secs(90)).trailer("x-sum", "7")]);
    let response = call(&server, get("/")).await.unwrap();
    let response = response.map(|body| body.into_inner().expect("no policy has looked into it"));
    assert!(!response.body().is_whole(), "longer than an attempt may take, and no timeout");
    let collected = response.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["x-sum"], "7");
    assert_eq!(collected.to_bytes(), long);

    // What breaks beyond the limit is the caller's.
    let server = service([chunks(Reply::ok("")).reset_within(), Reply::ok("")]);
    let response = call(&server, get("/")).await.unwrap();
    assert!(read(response.into_body()).await.is_err());
    server.seen().sent(1);
}

/// A body that says how long it is, and counts how often it is asked.
struct Counted {
    left: usize,
    chunk: usize,
    says: Option<u64>,
    polled: Arc<AtomicUsize>,
}

impl Body for Counted {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.polled.fetch_add(1, Ordering::Relaxed);
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![7; self.chunk])))))
    }

    fn size_hint(&self) -> SizeHint {
        self.says.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

async fn counted(
    request: Request<()>,
    response: Response<()>,
    chunk: usize,
    left: usize,
    says: Option<u64>,
) -> (usize, bool) {
    let polled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&polled);
    let mut response = Some(response);
    let inner = service_fn(move |_: Request<()>| {
        let body = Counted { left, chunk, says, polled: Arc::clone(&count) };
        let response = response.take().expect("one call").map(|()| body);
        async move { Ok::<_, BoxError>(response) }
    });
    let response = BufferResponseLayer::new(LIMIT).layer(inner).oneshot(request).await.unwrap();
    (polled.load(Ordering::Relaxed), response.body().is_whole())
}

#[tokio::test]
async fn what_is_not_begun_to_be_read() {
    let ok = || Response::new(());
    let of = |status: u16| Response::builder().status(status).body(()).unwrap();
    let get = || Request::get("/").body(()).unwrap();
    assert_eq!(counted(get(), ok(), 100, 10, Some(1000)).await, (11, true), "exactly the limit");
    assert_eq!(counted(get(), ok(), 100, 11, Some(1100)).await, (0, false), "said to be longer");
    for status in [404, 429, 500, 503, 302, 101] {
        assert_eq!(counted(get(), of(status), 100, 3, Some(300)).await, (0, false), "{status}");
    }
    let told = Response::builder().header("retry-after", "30").body(()).unwrap();
    assert_eq!(counted(get(), told, 100, 3, Some(300)).await, (0, false), "Retry-After");
    let connect = Request::connect("shop.example:443").body(()).unwrap();
    assert_eq!(counted(connect, ok(), 100, 3, Some(300)).await, (0, false), "CONNECT");
}

#[tokio::test]
async fn memory_is_bounded_by_the_limit_and_a_frame() {
    let get = || Request::get("/").body(()).unwrap();
    // The frame that crosses the limit is the last.
    assert_eq!(counted(get(), Response::new(()), 300, 1_000_000, None).await, (4, false));
    // Endless small and empty frames end too.
    assert_eq!(counted(get(), Response::new(()), 1, usize::MAX, None).await, (16, false));
    assert_eq!(counted(get(), Response::new(()), 0, usize::MAX, None).await, (16, false));
    // A head that says less than comes is not believed.
    assert_eq!(counted(get(), Response::new(()), 300, 1_000_000, Some(10)).await, (4, false));
}

#[tokio::test(start_paused = true)]
async fn sizes_trailers_and_ends_are_exact() {
    let server = service([Reply::ok("first, ").body("second").trailer("x-sum", "7")]);
    let body = call(&server, get("/")).await.unwrap().into_body();
    let mut body = body.into_inner().expect("no policy has looked into it");
    assert!(body.is_whole() && !body.is_end_stream());
    assert_eq!(body.size_hint().exact(), Some(13));
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "first, ");
    assert_eq!(body.size_hint().exact(), Some(6));
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "second");
    assert!(!body.is_end_stream(), "the trailers are to come");
    let trailers: HeaderMap = body.frame().await.unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(trailers["x-sum"], "7");
    assert!(body.is_end_stream() && body.frame().await.is_none());

    for (reply, request) in [
        (Reply::status(204), get("/")),
        (Reply::status(304), get("/")),
        (Reply::ok("0123456789"), Request::head("/").body(Full::default()).unwrap()),
    ] {
        let response = call(&service([reply]), request).await.unwrap();
        assert!(response.body().is_end_stream());
        assert_eq!(response.body().size_hint().exact(), Some(0));
    }
}

/// A 503 says when to come back, whatever becomes of its body.
#[tokio::test(start_paused = true)]
async fn a_failed_answer_s_head_is_not_lost_with_its_body() {
    let busy =
        Reply::status(503).header("retry-after", "30").body("01234").header("content-length", "10").stall_within();
    let server = service([busy, Reply::ok("done")]);
    assert_eq!(call(&server, get("/")).await.unwrap().status(), 200);
    assert!(server.seen().gaps()[0] >= Duration::from_secs(30));
}

#[tokio::test]
async fn over_sockets() {
    for wire in WIRES {
        let whole = noise(200_000);
        let broken = |reply: Reply| match wire {
            Wire::Http1 => reply.reset_within(),
            Wire::Http2 => reply.reset_stream_within(redial::testing::Reason::InternalError),
        };
        let script =
            [broken(Reply::ok(whole.slice(..150_000)).header("content-length", "200000")), Reply::ok(whole.clone())];
        let server = match wire {
            Wire::Http1 => Server::http1(script),
            Wire::Http2 => Server::http2(script),
        };
        let client = ServiceBuilder::new()
            .layer(RetryLayer::new(policy().build().unwrap()))
            .layer(BufferResponseLayer::new(1 << 20))
            .service(hyper_client(wire));
        let response = soon(client.oneshot(get(&server.url("/file")))).await.unwrap();
        assert_eq!(attempts(&response), 2, "{wire:?}");
        let body = response.into_body().into_inner().expect("no policy has looked into it");
        assert!(body.is_whole());
        assert_eq!(read(body).await.unwrap(), whole);
    }
}
