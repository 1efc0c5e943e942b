//! reqwest's requests and responses through the policy and back.

use std::{
    future::{Pending, pending},
    marker::PhantomData,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::stream;
use redial::{
    AttemptTimedOut, Deadline, FaultKind, Reach, RequestOptions, RetryLayer, StopReason, Timeouts,
    reqwest::Adapter,
    testing::{Reply, Script, Server},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tower::{ServiceBuilder, ServiceExt};

use crate::{client, ended, inner, ms, policy, report, within};

#[tokio::test]
async fn an_answer_is_reqwests_own_with_the_report_of_the_call() {
    let server = Server::http1([Reply::status(503), Reply::ok("an order").header("x-kind", "order")]);
    let response = client(policy()).get(server.url("/orders/7?draft=1")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.url().as_str(), server.url("/orders/7?draft=1"));
    assert_eq!(response.headers()["x-kind"], "order");
    assert_eq!(response.version(), reqwest::Version::HTTP_11);
    assert_eq!(response.remote_addr(), Some(server.addr()));
    assert_eq!(response.content_length(), Some(8));
    assert_eq!((report(&response).attempts().len(), report(&response).stop()), (2, None));
    assert_eq!(response.text().await.unwrap(), "an order");
    // The failed answer was read to its end: its connection was free again.
    assert_eq!(server.seen().connections, 1);
}

#[tokio::test]
async fn what_is_in_memory_is_repeated_whole() {
    let large = Bytes::from(vec![7; 1 << 20]);
    let order = serde_json::json!({ "amount": 7 });
    let builders: [fn(Request, &Bytes, &serde_json::Value) -> Request; 5] = [
        |request, _, order| request.json(order),
        |request, _, order| request.form(order),
        |request, _, _| request.body("seven"),
        |request, large, _| request.body(large.clone()),
        |request, _, _| request,
    ];
    for build in builders {
        let server = Server::http1([Reply::ok(""), Reply::status(503), Reply::reset(), Reply::ok("")]);
        // reqwest alone, and then through the policy.
        let put = || build(client(policy()).put(server.url("/")), &large, &order);
        let mut alone = None;
        let _ = put().with(|builder| {
            alone = builder.try_clone();
            builder
        });
        alone.unwrap().send().await.unwrap();
        let response = put().send().await.unwrap();
        assert_eq!((response.status().as_u16(), report(&response).attempts().len()), (200, 3));
        let seen = server.until(|seen| seen.complete() == 4).await;
        let [alone, attempts @ ..] = &seen.sent(4).requests[..] else { unreachable!() };
        for attempt in attempts {
            assert_eq!(attempt.body.sha256, alone.body.sha256, "{seen}");
            assert_eq!(attempt.headers, alone.headers, "each attempt is framed as reqwest itself does it");
        }
    }
}

type Request = redial::reqwest::RequestBuilder;

fn chunks(count: usize) -> reqwest::Body {
    reqwest::Body::wrap_stream(stream::iter((0..count).map(|_| Ok::<_, std::io::Error>(vec![7; 1024]))))
}

#[tokio::test]
async fn a_stream_is_repeated_where_it_fits_the_tape_and_else_sent_once() {
    let server = Server::http1([Reply::status(503), Reply::ok("")]);
    let response = client(policy()).put(server.url("/")).body(chunks(10)).send().await.unwrap();
    assert_eq!((response.status().as_u16(), report(&response).attempts().len()), (200, 2));
    let seen = server.until(|seen| seen.complete() == 2).await;
    assert!(seen.requests.iter().all(|request| request.body.is([7; 10 * 1024])), "{seen}");

    let server = Server::http1([Reply::status(503), Reply::ok("")]);
    let response = client(policy()).put(server.url("/")).body(chunks(100)).send().await.unwrap();
    assert_eq!((response.status().as_u16(), report(&response).stop()), (503, Some(StopReason::BodyTooLarge)));
    assert!(server.seen().sent(1).requests[0].body.is([7; 100 * 1024]));

    let server = Server::http1([Reply::ok("")]);
    let response = client(policy()).post(server.url("/")).body(chunks(100)).send().await.unwrap();
    assert_eq!(response.status(), 200, "no error because of us");
}

#[tokio::test]
async fn a_refused_connection_of_a_post_is_repeated_and_a_reset_is_not() {
    let refusing = Server::refusing();
    let error = client(policy()).post(refusing.url("/")).body("one more").send().await.unwrap_err();
    assert_eq!(ended(&error), (3, Some(StopReason::Attempts), vec![Reach::NotSent; 3]));
    assert!(error.is_connect() && !error.is_timeout());
    assert!(error.find_source::<reqwest::Error>().unwrap().is_connect());

    for reply in [Reply::reset(), Reply::close()] {
        let server = Server::http1([reply]);
        let error = client(policy()).post(server.url("/")).body("one more").send().await.unwrap_err();
        assert_eq!(ended(&error), (1, Some(StopReason::NoEvidence), vec![Reach::Unknown]));
        server.seen().sent(1);
    }
}

#[tokio::test]
async fn reqwests_timeout_ends_an_attempt_where_it_is_the_shorter() {
    let server = Server::http1([Reply::stall()]);
    let began = Instant::now();
    let get = client(policy()).get(server.url("/")).timeout(ms(100));
    let error = get.send().await.unwrap_err();
    assert_eq!(ended(&error), (3, Some(StopReason::Attempts), vec![Reach::Unknown; 3]));
    assert!(error.is_timeout() && !error.is_connect(), "{error}");
    assert!(error.find_source::<reqwest::Error>().unwrap().is_timeout());
    assert!(error.find_source::<AttemptTimedOut>().is_none());
    assert!((ms(300)..ms(5_000)).contains(&began.elapsed()), "it held for each attempt");
    server.seen().sent(3);

    // A POST that timed out may have been processed.
    let error = client(policy()).post(server.url("/")).timeout(ms(100)).send().await.unwrap_err();
    assert_eq!(ended(&error), (1, Some(StopReason::NoEvidence), vec![Reach::Unknown]));
}

#[tokio::test]
async fn the_policys_timeout_ends_an_attempt_where_it_is_the_shorter() {
    let server = Server::http1([Reply::stall()]);
    let policy = within(Timeouts { attempt: ms(100), total: ms(10_000) });
    let error = client(policy).get(server.url("/")).timeout(Duration::from_secs(20)).send().await.unwrap_err();
    assert_eq!(ended(&error).0, 3);
    assert!(error.is_timeout());
    assert_eq!(error.find_source::<AttemptTimedOut>().unwrap().after(), ms(100));
    assert!(error.find_source::<reqwest::Error>().is_none());
}

#[tokio::test]
async fn reqwests_timeout_also_ends_the_body() {
    let server = Server::http1([Reply::status(503), Reply::ok("half").stall_within()]);
    let response = client(policy()).get(server.url("/")).timeout(ms(300)).send().await.unwrap();
    assert!(response.text().await.unwrap_err().is_timeout());
}

/// Connections that never come about, as a handshake that nobody answers.
#[derive(Clone, Copy)]
struct NoConnection;

impl<S> tower::Layer<S> for NoConnection {
    type Service = Stalled<S>;

    fn layer(&self, _: S) -> Stalled<S> {
        Stalled(PhantomData)
    }
}

struct Stalled<S>(PhantomData<fn() -> S>);

impl<S> Clone for Stalled<S> {
    fn clone(&self) -> Self {
        Stalled(PhantomData)
    }
}

impl<S: tower::Service<R>, R> tower::Service<R> for Stalled<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pending<Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: R) -> Self::Future {
        pending()
    }
}

#[tokio::test]
async fn reqwests_connect_timeout_proves_that_nothing_was_sent() {
    let server = Server::http1([Reply::ok("")]);
    let connecting = inner().connector_layer(NoConnection).connect_timeout(ms(50)).build().unwrap();
    let client = redial::reqwest::client(connecting, policy().build().unwrap());
    let error = client.post(server.url("/")).body("one more").send().await.unwrap_err();
    assert_eq!(ended(&error), (3, Some(StopReason::Attempts), vec![Reach::NotSent; 3]));
    let source = error.find_source::<reqwest::Error>().unwrap();
    assert!(error.is_connect() && source.is_connect() && source.is_timeout(), "{error:?}");
}

/// A resolver that is down.
struct Down;

impl reqwest::dns::Resolve for Down {
    fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
        Box::pin(async { Err("the resolver is down".into()) })
    }
}

#[tokio::test]
async fn a_name_that_is_not_resolved_was_not_sent_to() {
    let unresolved = inner().dns_resolver(std::sync::Arc::new(Down)).build().unwrap();
    let client = redial::reqwest::client(unresolved, policy().build().unwrap());
    let error = client.post("http://orders.example/").body("one more").send().await.unwrap_err();
    assert_eq!(ended(&error), (3, Some(StopReason::Attempts), vec![Reach::NotSent; 3]));
    assert_eq!(error.fault().unwrap().kind(), FaultKind::Dns);
    assert!(error.is_connect());
}

#[tokio::test]
async fn options_and_deadlines_of_the_request_reach_the_policy() {
    let server = Server::http1([Reply::status(503)]);
    let client = client(policy());
    let sent = |options: RequestOptions| client.get(server.url("/")).extension(options).send();
    assert_eq!(report(&sent(RequestOptions::new().never_retry()).await.unwrap()).attempts().len(), 1);
    assert_eq!(report(&sent(RequestOptions::new().attempts(2)).await.unwrap()).attempts().len(), 2);

    // A request of `http` that became reqwest's keeps its own.
    let mut request = http::Request::post(server.url("/")).body("one more").unwrap();
    request.extensions_mut().insert(RequestOptions::new().attempts(2).idempotent("the number is unique"));
    let response = client.execute(request.try_into().unwrap()).await.unwrap();
    assert_eq!(report(&response).attempts().len(), 2);

    let silent = Server::http1([Reply::stall()]);
    let get = client.get(silent.url("/")).extension(Deadline::after(ms(200)));
    let error = get.send().await.unwrap_err();
    assert!(error.is_outer_deadline(), "{error}");
}

#[tokio::test]
async fn the_version_reaches_the_wire_in_each_attempt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let mut lines = Vec::new();
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            lines.push(String::from_utf8(head).unwrap().lines().next().unwrap().to_owned());
            stream.write_all(b"HTTP/1.0 503 Busy\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
        lines
    });
    let client = client(policy().attempts(2));
    client.get(url).version(reqwest::Version::HTTP_10).send().await.unwrap();
    assert_eq!(server.await.unwrap(), ["GET / HTTP/1.0"; 2]);
}

#[tokio::test]
async fn a_request_that_cannot_be_built_says_why() {
    let client = client(policy());
    let error = client.get("no url").send().await.unwrap_err();
    assert!(error.find_source::<reqwest::Error>().unwrap().is_builder());
    assert!(error.report().is_none(), "nothing was sent");
    // reqwest itself turns a scheme down, as an attempt.
    let error = client.get("ftp://127.0.0.1/").send().await.unwrap_err();
    assert_eq!(ended(&error).0, 1);
    assert!(error.is_permanent());
}

#[tokio::test]
async fn a_cancelled_call_leaves_nothing_behind() {
    let server = Server::http1(Script::new([Reply::status(503), Reply::stall()]));
    let client = client(policy());
    let call = client.put(server.url("/")).body("one more").send();
    assert!(tokio::time::timeout(ms(200), call).await.is_err());
    let seen = server.until(|seen| seen.in_flight() == 0 && seen.requests.len() == 2).await;
    seen.sent(2);
}

#[tokio::test]
async fn nothing_that_can_be_printed_shows_a_secret() {
    let mut headers = http::HeaderMap::new();
    headers.insert("authorization", "Bearer TOKEN".parse().unwrap());
    let inner = inner().default_headers(headers).build().unwrap();
    let client = redial::reqwest::client(inner.clone(), policy().build().unwrap());
    let builder = client.get("http://127.0.0.1/?signature=SIG").bearer_auth("TOKEN");
    let adapter = redial::reqwest::Adapter::new(inner);
    let middleware = redial::reqwest_middleware::RetryMiddleware::new(policy().build().unwrap());
    let text = format!("{client:?} {builder:?} {adapter:?} {middleware:?}");
    assert!(!text.contains("TOKEN") && !text.contains("SIG"), "{text}");
}

/// A buffer calls the client from its own task, where reqwest's look at the body is taken for the sending of it: the proof is
/// lost, and what was never sent is not repeated, which is the safe side.
#[tokio::test]
async fn a_buffer_above_the_adapter_costs_the_proof() {
    let refusing = Server::refusing();
    let order = || http::Request::post(refusing.url("/")).body(reqwest::Body::from("an order")).unwrap();
    let layer = || RetryLayer::new(policy().build().unwrap());
    let adapter = || Adapter::new(inner().build().unwrap());
    let plain = ServiceBuilder::new().layer(layer()).service(adapter());
    let error = plain.oneshot(order()).await.map(drop).unwrap_err();
    assert_eq!(ended(&error), (3, Some(StopReason::Attempts), vec![Reach::NotSent; 3]));
    let buffered = ServiceBuilder::new().layer(layer()).buffer(8).service(adapter());
    let error = buffered.oneshot(order()).await.map(drop).unwrap_err();
    assert_eq!(ended(&error), (1, Some(StopReason::NoEvidence), vec![Reach::Unknown]));
}
