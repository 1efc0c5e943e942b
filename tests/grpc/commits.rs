//! From when on an answer is the caller's.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body::Frame;
use http_body_util::StreamBody;
use redial::{GrpcCode, StandardPolicy, Timeouts, Transient, grpc::Commit, testing::Reply};
use tokio::time::Instant;
use tonic::{Code, GrpcMethod, Request, service::interceptor::InterceptedService};

use super::support::*;

fn unary(policy: StandardPolicy, script: Vec<Reply>) -> (Client<Scripted>, redial::testing::ScriptService) {
    let service = redial::testing::service(script);
    (Client::new(redial::grpc::channel(service.clone(), policy).commit(Commit::Status)), service)
}

fn message_then(code: GrpcCode) -> Reply {
    head().body(framed("half")).ends(code)
}

#[tokio::test(start_paused = true)]
async fn by_default_with_the_first_message() {
    let (mut client, service) = scripted([message_then(GrpcCode::Unavailable), done()], idempotent());
    let status = client.place(order()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(redial::grpc::error(&status).is_none(), "nothing of it was to be repeated");
    service.seen().sent(1);
}

#[tokio::test(start_paused = true)]
async fn a_unary_call_with_its_status() {
    let script = || vec![message_then(GrpcCode::Unavailable), done()];
    let (mut client, service) = unary(idempotent(), script());
    assert_eq!(client.place(order()).await.unwrap().get_ref(), "done");
    service.seen().sent(2);

    // Not without evidence, and the report says so.
    let (mut client, service) = unary(builder().build().unwrap(), script());
    let status = client.place(order()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(report(&status).stop(), Some(redial::StopReason::NoEvidence));
    service.seen().sent(1);
}

#[tokio::test(start_paused = true)]
async fn one_request_can_say_so_itself() {
    let (mut client, service) = scripted([message_then(GrpcCode::Unavailable), done()], idempotent());
    let mut request = order();
    request.extensions_mut().insert(Commit::Status);
    client.place(request).await.unwrap();
    service.seen().sent(2);

    // And against its channel.
    let (mut client, service) = unary(idempotent(), vec![message_then(GrpcCode::Unavailable), done()]);
    let mut request = order();
    request.extensions_mut().insert(Commit::Message);
    client.place(request).await.unwrap_err();
    service.seen().sent(1);
}

/// An interceptor above knows the method, where the client is a generated one.
#[tokio::test(start_paused = true)]
async fn an_interceptor_can_say_so_by_method() {
    let service = redial::testing::service([message_then(GrpcCode::Unavailable), done()]);
    let channel = redial::grpc::channel(service.clone(), idempotent());
    let unary = |mut request: Request<()>| {
        if request.extensions().get::<GrpcMethod<'static>>().is_some_and(|method| method.method() == "Place") {
            request.extensions_mut().insert(Commit::Status);
        }
        Ok(request)
    };
    let mut request = order();
    request.extensions_mut().insert(GrpcMethod::new("shop.Orders", "Place")); // as generated code does
    Client::new(InterceptedService::new(channel, unary)).place(request).await.unwrap();
    service.seen().sent(2);
}

/// As gRFC A6 has it: what comes after the head is the caller's.
#[tokio::test(start_paused = true)]
async fn with_the_head_where_that_is_asked_for() {
    for (first, sent) in [(head().ends(GrpcCode::Unavailable), 1), (unavailable(), 2)] {
        let service = redial::testing::service([first, done()]);
        let channel = redial::grpc::channel(service.clone(), idempotent()).commit(Commit::Head);
        assert_eq!(Client::new(channel).place(order()).await.is_ok(), sent == 2);
        service.seen().sent(sent);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_repeated_before_it_is_the_callers() {
    // Before its first message; for a unary call, before its status.
    for (commit, broken) in [
        (Commit::Message, head().reset_within()),
        (Commit::Status, head().body(framed("half")).reset_within()),
        (Commit::Status, head().body(framed("half")).close_within()),
    ] {
        let (mut client, service) = scripted([broken, done()], idempotent());
        let mut request = order();
        request.extensions_mut().insert(commit);
        assert_eq!(client.place(request).await.unwrap().get_ref(), "done", "{commit:?}");
        service.seen().sent(2);
    }
    // After it, never.
    let (mut client, service) = scripted([head().body(framed("half")).reset_within(), done()], idempotent());
    client.place(order()).await.unwrap_err();
    service.seen().sent(1);
}

/// It had arrived, whatever its end says: REFUSED_STREAM within an answer is no proof.
#[tokio::test]
async fn no_end_of_an_answer_proves_that_it_was_never_sent() {
    let broken = head().pause(Duration::from_millis(1)).reset_stream_within(redial::testing::Reason::RefusedStream);
    let server = redial::testing::Server::http2([broken, done()]);
    let mut client = Client::new(redial::grpc::channel(channel(server.addr()), builder().build().unwrap()));
    let status = soon(client.place(order())).await.unwrap_err();
    assert_eq!(report(&status).attempts()[0].reach, redial::Reach::Unknown);
    assert_eq!(report(&status).stop(), Some(redial::StopReason::NoEvidence));
    server.seen().sent(1);
}

/// A silent stream is handed on soon after its head, and is not cut by the attempt's timeout.
#[tokio::test(start_paused = true)]
async fn a_silent_stream_is_not_waited_for() {
    let quiet = head().pause(Duration::from_secs(600)).body(framed("at last")).ends(GrpcCode::Ok);
    let (mut client, service) = scripted([quiet], idempotent());
    let started = Instant::now();
    let mut stream = client.watch(order()).await.unwrap().into_inner();
    assert_eq!(started.elapsed(), Duration::from_millis(500));
    assert_eq!(stream.message().await.unwrap().unwrap(), "at last");
    assert_eq!(stream.message().await.unwrap(), None);
    service.seen().sent(1);
}

/// However short that is.
#[tokio::test(start_paused = true)]
async fn nor_for_longer_than_half_of_a_short_attempt() {
    let quiet = head().after(Duration::from_millis(40)).pause(Duration::from_secs(600)).body(framed("at last"));
    let timeouts = Timeouts { attempt: Duration::from_millis(100), total: Duration::from_secs(1) };
    let policy = StandardPolicy::new("shop", timeouts, Transient::usual()).unwrap();
    let (mut client, service) = scripted([quiet.ends(GrpcCode::Ok)], policy);
    let started = Instant::now();
    let mut stream = client.watch(order()).await.unwrap().into_inner();
    assert_eq!(started.elapsed(), Duration::from_millis(70));
    assert_eq!(stream.message().await.unwrap().unwrap(), "at last");
    service.seen().sent(1);
}

#[tokio::test(start_paused = true)]
async fn with_the_head_while_the_request_is_not_all_said() {
    let quiet = head().early().pause(Duration::from_secs(600)).body(framed("at last")).ends(GrpcCode::Ok);
    let (mut client, _) = scripted([quiet], idempotent());
    let started = Instant::now();
    let mut stream = client.chat(futures_util::stream::pending()).await.unwrap().into_inner();
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(stream.message().await.unwrap().unwrap(), "at last");
}

/// More than may be held back is committed, with all that has come.
#[tokio::test(start_paused = true)]
async fn a_large_unary_answer_is_committed_as_it_comes() {
    let large = vec![b'x'; 300 * 1024];
    let mut answer = head();
    for part in framed(&large).chunks(10_000) {
        answer = answer.body(Bytes::copy_from_slice(part));
    }
    let (mut client, service) = unary(idempotent(), vec![answer.clone().ends(GrpcCode::Ok)]);
    assert_eq!(client.place(order()).await.unwrap().get_ref().len(), large.len());
    service.seen().sent(1);
    let (mut client, service) = unary(idempotent(), vec![answer.ends(GrpcCode::Unavailable), done()]);
    assert_eq!(client.place(order()).await.unwrap_err().code(), Code::Unavailable);
    service.seen().sent(1);
}

/// Empty frames are no message, and a flood of them ends. (The kit leaves empty frames out.)
#[tokio::test(start_paused = true)]
async fn empty_frames_are_no_message() {
    for (frames, sent) in [(0, 3), (10, 3), (3_000, 1)] {
        for commit in [Commit::Message, Commit::Status] {
            let count = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&count);
            let service = tower::service_fn(move |_: http::Request<tonic::body::Body>| {
                counted.fetch_add(1, Relaxed);
                let trailers =
                    [("grpc-status", "14")].map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
                let trailers = Frame::trailers(http::HeaderMap::from_iter(trailers));
                let frames = (0..frames).map(|_| Frame::data(Bytes::new())).chain([trailers]);
                let body = StreamBody::new(futures_util::stream::iter(frames.map(Ok::<_, Infallible>)));
                async { Ok::<_, Infallible>(http::Response::new(body)) }
            });
            let mut client = Client::new(redial::grpc::channel(service, idempotent()).commit(commit));
            assert_eq!(client.place(order()).await.unwrap_err().code(), Code::Unavailable);
            assert_eq!(count.load(Relaxed), sent, "{frames} {commit:?}");
        }
    }
}

/// Head, messages and trailers reach a caller as they came, whatever was looked at.
#[tokio::test(start_paused = true)]
async fn an_answer_passes_on_unchanged() {
    use tower::ServiceExt;
    let replies = [
        done(),
        message_then(GrpcCode::Unavailable),
        head().ends(GrpcCode::NotFound),
        fails(GrpcCode::NotFound),
        Reply::status(404),
    ];
    for (at, reply) in replies.into_iter().enumerate() {
        for commit in [Commit::Head, Commit::Message, Commit::Status] {
            if (at, commit) == (1, Commit::Status) {
                continue; // has something to report: see above
            }
            let request = || http::Request::post("/shop.Orders/Place").body(tonic::body::Body::empty()).unwrap();
            let service = || redial::testing::service([reply.clone()]);
            let (expected, expected_body) = service().oneshot(request()).await.unwrap().into_parts();
            let client = redial::grpc::channel(service(), idempotent()).commit(commit);
            let (head, body) = client.oneshot(request()).await.unwrap().into_parts();
            assert_eq!((head.status, head.headers), (expected.status, expected.headers), "{at} {commit:?}");
            assert_eq!(read(body).await, read(expected_body).await, "{at} {commit:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_unary_answers_metadata_is_whole() {
    let (mut client, _) = unary(idempotent(), vec![done().header("x-from", "the head")]);
    let answer = client.place(Request::new(Bytes::new())).await.unwrap();
    assert_eq!(answer.metadata().get("x-from").unwrap(), "the head");
    assert_eq!(answer.metadata().get("x-trailer").unwrap(), "the end");
}
