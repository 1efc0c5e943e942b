//! All of them in one stack, in the order that the docs show.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use redial::{
    BufferResponseLayer, CallReport, Error, IdempotencyKeyLayer, RecoverLayer, ResumeLayer, RetryLayer, TimeoutLayer,
    layers::{BufferedBody, Failure, RecoverBody, ResumeBody},
    testing::{Reply, Script, ScriptService, Server, service},
};
use tower::{Service, ServiceBuilder, ServiceExt, util::BoxCloneSyncService};

use crate::{
    get, paused, read,
    resuming::{ETAG, FILE},
    support::{HyperClient, Wire, attempts, hyper_client, policy, soon},
};

/// The stack of the page of `redial::layers`, over this client and policy.
macro_rules! stack {
    ($policy:expr, $client:expr) => {
        ServiceBuilder::new()
            .layer(RecoverLayer::new(|failure: Failure<_>| failure.into_answer()))
            .layer(TimeoutLayer::new().total(Duration::from_secs(600)))
            .layer(ResumeLayer::new())
            .layer(TimeoutLayer::new().body_idle(Duration::from_secs(2)))
            .layer(IdempotencyKeyLayer::new())
            .layer(RetryLayer::new($policy.build().unwrap()))
            .layer(BufferResponseLayer::new(64))
            .service($client)
    };
}

fn script() -> Script {
    let large = "0123456789".repeat(20);
    let first = Reply::ok(large[..100].to_owned()).header("content-length", "200").header("etag", ETAG).stall_within();
    let rest = Reply::status(206).header("etag", ETAG).header("content-range", "bytes 100-199/200");
    let small = Reply::ok(&FILE[..3]).header("content-length", "10").close_within();
    Script::new([Reply::status(404)])
        // Streams, stalls, and is resumed; the request for the rest is repeated.
        .route("GET /large", [Reply::status(503), first, Reply::status(503), rest.body(large[100..].to_owned())])
        // Is read within its attempt, which is repeated.
        .route("GET /small", [small, Reply::ok(FILE)])
        // Has a key.
        .route("POST /orders", [Reply::reset(), Reply::status(503), Reply::status(201)])
        // Is given up on.
        .route("GET /down", [Reply::status(503)])
}

/// What each layer does, as seen by the caller; and what the server saw.
async fn runs<C, B>(client: C, base: &str) -> [String; 5]
where
    C: Service<Request<Full<Bytes>>, Response = http::Response<B>, Error = Error> + Clone,
    B: http_body::Body<Data = Bytes, Error = Error>,
{
    let call = async |request: Request<Full<Bytes>>| {
        let response = soon_or_paused(client.clone().oneshot(request)).await.unwrap();
        let (status, attempts) = (response.status().as_u16(), attempts(&response));
        let given_up = response.extensions().get().and_then(CallReport::stop).map_or("", |stop| stop.as_str());
        let body = soon_or_paused(read(response.into_body())).await.unwrap();
        format!("{status}, {attempts} attempts, {} bytes{given_up}", body.len())
    };
    let post = Request::post(format!("{base}/orders")).body(Full::from("one")).unwrap();
    [
        call(get(&format!("{base}/large"))).await,
        call(get(&format!("{base}/small"))).await,
        call(post).await,
        call(get(&format!("{base}/down"))).await,
        call(get(&format!("{base}/none"))).await,
    ]
}

async fn soon_or_paused<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(300), future).await.expect("it hangs")
}

const EXPECTED: [&str; 5] = [
    "200, 2 attempts, 200 bytes",
    "200, 2 attempts, 10 bytes",
    "201, 3 attempts, 0 bytes",
    "503, 3 attempts, 0 bytesattempts",
    "404, 1 attempts, 0 bytes",
];

fn check(seen: &redial::testing::Seen) {
    seen.to("GET /large").sent(4);
    seen.to("GET /small").sent(2);
    let orders = seen.to("POST /orders");
    let keys: Vec<_> =
        orders.sent(3).requests.iter().map(|request| request.headers["idempotency-key"].clone()).collect();
    assert!(keys.iter().all(|key| *key == keys[0]), "one key a call: {keys:?}");
    seen.to("GET /down").sent(3);
    assert!(seen.to("GET /large").requests.iter().all(|request| !request.headers.contains_key("idempotency-key")));
}

#[tokio::test(start_paused = true)]
async fn the_whole_stack() {
    let server: ScriptService = service(script());
    assert_eq!(runs(stack!(paused(), server.clone()), "").await, EXPECTED);
    check(&server.seen());
}

#[tokio::test]
async fn the_whole_stack_over_sockets() {
    for wire in [Wire::Http1, Wire::Http2] {
        let server = match wire {
            Wire::Http1 => Server::http1(script().route("/unused", [Reply::ok("")])),
            Wire::Http2 => Server::http2(script()),
        };
        let client = stack!(policy(), hyper_client::<Full<Bytes>>(wire));
        assert_eq!(soon(runs(client, server.url("").trim_end_matches('/'))).await, EXPECTED, "{wire:?}");
        check(&server.seen());
    }
}

#[tokio::test(start_paused = true)]
async fn it_can_be_erased_spawned_and_shared() {
    let server = service(script());
    let erased: BoxCloneSyncService<Request<Full<Bytes>>, http::Response<_>, Error> =
        BoxCloneSyncService::new(stack!(paused(), server));
    let task = tokio::spawn(async move {
        let mut erased = erased;
        let response = erased.ready().await?.call(get("/small")).await?;
        read(response.into_body()).await
    });
    assert_eq!(task.await.unwrap().unwrap(), FILE);
}

/// What the layers hold is what the inner parts allow.
const _: fn() = || {
    fn is<T: Send + Unpin>() {}
    type Hyper = HyperClient<Full<Bytes>>;
    type Stack = redial::retry::Retry<Hyper, redial::StandardPolicy>;
    type Incoming = hyper::body::Incoming;
    is::<BufferedBody<Incoming>>();
    is::<ResumeBody<Stack, Full<Bytes>, Incoming>>();
    is::<RecoverBody<Incoming>>();
    fn is_shared<T: Send + Sync + Clone>() {}
    is_shared::<BufferResponseLayer>();
    is_shared::<ResumeLayer>();
    is_shared::<RecoverLayer<fn()>>();
    is_shared::<IdempotencyKeyLayer>();
    is_shared::<redial::layers::Resume<Stack>>();
    is_shared::<redial::layers::BufferResponse<Stack>>();
    is_shared::<redial::layers::Recover<Stack, fn()>>();
    is_shared::<redial::layers::IdempotencyKey<Stack>>();
    fn is_sent<T: Send>() {}
    is_sent::<redial::layers::ResumeFuture<Stack, Full<Bytes>>>();
    is_sent::<redial::layers::BufferResponseFuture<std::future::Ready<()>, Full<Bytes>>>();
    is_sent::<redial::layers::RecoverFuture<std::future::Ready<()>, fn()>>();
};
