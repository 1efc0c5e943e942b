//! gRPC, by a generated client, against the kit and against a server of tonic's own.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, stream};
use http::uri::PathAndQuery;
use redial::{
    Budget, GrpcCode, StopReason, Timeouts, Transient,
    grpc::Commit,
    testing::{Reply, Server},
};
use tokio::{net::TcpListener, time::Instant};
use tonic::{
    Code, Request, Response, Status, Streaming,
    body::Body,
    client::Grpc,
    codec::CompressionEncoding,
    metadata::MetadataMap,
    server::{Grpc as Serve, NamedService, StreamingService},
    transport::{Channel, Endpoint},
};
use tower::Service;

use crate::support::*;

type Items = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

/// Fails the first calls with this status, then echoes; compresses where it is asked to.
#[derive(Clone)]
struct Orders {
    fails: Arc<Mutex<Vec<Status>>>,
    seen: Arc<Mutex<Vec<MetadataMap>>>,
    got: Arc<Mutex<Vec<usize>>>,
}

impl NamedService for Orders {
    const NAME: &'static str = "shop.Orders";
}

impl StreamingService<Bytes> for Orders {
    type Response = Bytes;
    type ResponseStream = Items;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Items>, Status>> + Send>>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        self.seen.lock().unwrap().push(request.metadata().clone());
        let fail = self.fails.lock().unwrap().pop();
        let got = Arc::clone(&self.got);
        let mut messages = request.into_inner();
        Box::pin(async move {
            let mut all = Vec::new();
            while let Some(message) = messages.message().await? {
                got.lock().unwrap().push(message.len());
                all.push(Ok(message));
            }
            match fail {
                Some(status) => Err(status),
                None => Ok(Response::new(Box::pin(stream::iter(all)) as Items)),
            }
        })
    }
}

impl Service<http::Request<Body>> for Orders {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let orders = self.clone();
        Box::pin(async move {
            let mut serve = Serve::new(Raw)
                .accept_compressed(CompressionEncoding::Gzip)
                .send_compressed(CompressionEncoding::Gzip)
                .max_decoding_message_size(usize::MAX)
                .max_encoding_message_size(usize::MAX);
            Ok(serve.streaming(orders, request).await)
        })
    }
}

async fn serve(fails: impl IntoIterator<Item = Status>) -> (Orders, std::net::SocketAddr) {
    let orders =
        Orders { fails: Arc::new(Mutex::new(fails.into_iter().collect())), seen: Arc::default(), got: Arc::default() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let router = tonic::transport::Server::builder().add_service(orders.clone());
    tokio::spawn(async move {
        let incoming = stream::unfold(listener, |listener| async {
            let accepted = listener.accept().await.map(|(stream, _)| stream);
            Some((accepted, listener))
        });
        let _ = router.serve_with_incoming(incoming).await;
    });
    (orders, addr)
}

fn busy() -> Status {
    Status::unavailable("not just now")
}

#[tokio::test]
async fn compressed_messages_are_repeated() {
    let (orders, addr) = serve([busy(), busy()]).await;
    let mut client = Grpc::new(redial::grpc::channel(channel(addr), idempotent()))
        .send_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(usize::MAX);
    let message = Bytes::from(vec![7; 300_000]);
    for commit in [Commit::Message, Commit::Status, Commit::Head] {
        orders.fails.lock().unwrap().extend([busy(), busy()]);
        orders.fails.lock().unwrap().truncate(2);
        orders.got.lock().unwrap().clear();
        client.ready().await.unwrap();
        let mut request = Request::new(message.clone());
        request.extensions_mut().insert(commit);
        let path = PathAndQuery::from_static("/shop.Orders/Place");
        let answer = soon(client.unary(request, path, Raw)).await.unwrap();
        assert_eq!(answer.get_ref(), &message);
        assert_eq!(*orders.got.lock().unwrap(), [300_000; 3], "{commit:?}");
    }
}

#[tokio::test]
async fn a_large_unary_message_is_repeated_and_a_large_stream_is_sent_once() {
    let (orders, addr) = serve([busy()]).await;
    let mut client = Client::new(redial::grpc::channel(channel(addr), idempotent()));
    let message = Bytes::from(vec![7; 3 << 20]);
    let answer = soon(client.place(Request::new(message.clone()))).await.unwrap();
    assert_eq!(answer.get_ref(), &message);
    assert_eq!(*orders.got.lock().unwrap(), [3 << 20, 3 << 20]);

    let (orders, addr) = serve([busy()]).await;
    let mut client = Client::new(redial::grpc::channel(channel(addr), idempotent()));
    let status = soon(client.collect(stream::iter((0..20).map(|_| Bytes::from(vec![7; 10_000]))))).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "not just now"));
    assert_eq!(report(&status).stop(), Some(StopReason::BodyTooLarge));
    assert_eq!(orders.got.lock().unwrap().len(), 20);
}

/// What tonic alone gives the caller of a failed call, and what we give: the same code, text, details and metadata.
#[tokio::test]
async fn a_failed_status_is_as_without_us() {
    let mut metadata = MetadataMap::new();
    metadata.insert("x-plain", "seven".parse().unwrap());
    metadata.append("x-plain", "eight".parse().unwrap());
    metadata.insert_bin("x-trace-bin", tonic::metadata::MetadataValue::from_bytes(&[0, 159, 146, 150, 255]));
    let fails = || {
        Status::with_details_and_metadata(
            Code::Unavailable,
            "ünïcode % text\n",
            Bytes::from_static(b"\0\xffdetails"),
            metadata.clone(),
        )
    };
    let (_, addr) = serve((0..10).map(|_| fails())).await;
    let alone = soon(Client::new(channel(addr)).place(order())).await.unwrap_err();
    let ours = soon(Client::new(redial::grpc::channel(channel(addr), idempotent())).place(order())).await.unwrap_err();
    assert_eq!(report(&ours).attempts().len(), 3);
    assert_eq!((ours.code(), ours.message(), ours.details()), (alone.code(), alone.message(), alone.details()));
    let headers = |status: &Status| {
        let mut headers = status.metadata().clone().into_headers();
        headers.remove("date");
        headers
    };
    assert_eq!(headers(&ours), headers(&alone));
}

#[tokio::test]
async fn a_timeout_beyond_all_clocks_and_one_that_lies() {
    for (asked, commit) in [("99999999H", Commit::Message), ("99999999H", Commit::Status), ("0n", Commit::Message)] {
        let (orders, addr) = serve([busy()]).await;
        let mut client = Client::new(redial::grpc::channel(channel(addr), idempotent()));
        let mut request = order();
        request.metadata_mut().insert("grpc-timeout", asked.parse().unwrap());
        request.extensions_mut().insert(commit);
        let answer = soon(client.place(request)).await;
        if asked == "0n" {
            assert_eq!(answer.unwrap_err().code(), Code::DeadlineExceeded);
            continue;
        }
        answer.unwrap();
        for seen in orders.seen.lock().unwrap().iter() {
            eprintln!("{commit:?}: {:?}", seen.get("grpc-timeout"));
        }
    }
}

#[tokio::test]
async fn the_channel_is_well_after_failures_of_every_kind() {
    let server = Server::http2([
        Reply::close(),
        Reply::refused_stream(),
        Reply::reset_stream(redial::testing::Reason::InternalError),
        Reply::stall(),
        unavailable(),
        done(),
    ]);
    let policy = builder().attempts_because(9, "to the end").idempotent("orders have numbers").build().unwrap();
    let mut client = Client::new(redial::grpc::channel(channel(server.addr()), policy));
    for _ in 0..3 {
        assert_eq!(soon(client.place(order())).await.unwrap().get_ref(), "done");
    }
}

/// One endpoint is dead, one lives.
#[tokio::test]
async fn a_balanced_channel_with_a_dead_endpoint() {
    let dead = Server::refusing();
    let (orders, addr) = serve([]).await;
    let balanced = Channel::balance_list(
        [format!("http://{}", dead.addr()), format!("http://{addr}")]
            .into_iter()
            .map(|url| Endpoint::from_shared(url).unwrap()),
    );
    // No evidence: a connection that was not made needs none.
    let mut client = Client::new(redial::grpc::channel(balanced, builder().build().unwrap()));
    for call in 0..10 {
        soon(client.place(order())).await.unwrap_or_else(|status| panic!("call {call}: {status:?}"));
    }
    assert_eq!(orders.seen.lock().unwrap().len(), 10);
}

#[tokio::test]
async fn a_cancelled_call_ends_at_the_server_and_gives_back() {
    let budget = Budget::aws();
    let server = Server::http2([unavailable(), Reply::stall()]);
    let policy = builder().budget(budget.clone()).idempotent("orders have numbers").build().unwrap();
    let mut client = Client::new(redial::grpc::channel(channel(server.addr()), policy));
    assert!(tokio::time::timeout(Duration::from_millis(400), client.place(order())).await.is_err());
    server.until(|seen| seen.requests.len() == 2 && seen.in_flight() == 0).await;
    // Cancelled while it waits.
    let server = Server::http2([unavailable()]);
    let budget = Budget::aws();
    let full = budget.level();
    let policy = builder()
        .backoff(redial::Backoff::fixed(Duration::from_secs(5), "to be cancelled"))
        .budget(budget.clone())
        .idempotent("orders have numbers")
        .build()
        .unwrap();
    let mut client = Client::new(redial::grpc::channel(channel(server.addr()), policy));
    assert!(tokio::time::timeout(Duration::from_millis(400), client.place(order())).await.is_err());
    assert_eq!(budget.level(), full);
    server.seen().sent(1);
}

/// The server answers with its head, and is silent then: the call is committed, and what ends it is the caller's own
/// deadline.
#[tokio::test(start_paused = true)]
async fn the_callers_own_timeout_ends_a_unary_call() {
    let (mut client, _) = scripted([head().stall_within()], idempotent());
    let mut request = order();
    request.set_timeout(Duration::from_millis(1_700));
    let began = Instant::now();
    let ended = tokio::time::timeout(Duration::from_secs(3600), client.place(request)).await;
    let status = ended.unwrap_or_else(|_| panic!("it still hangs after {:?}", began.elapsed())).unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
}

/// As the page's first sample has it: a unary method's answer is part of the attempt.
#[tokio::test(start_paused = true)]
async fn with_commit_status_it_ends_by_the_policys_timeouts() {
    let (mut client, service) = scripted([head().stall_within()], idempotent());
    let mut request = order();
    request.extensions_mut().insert(Commit::Status);
    let ended = tokio::time::timeout(Duration::from_secs(3600), client.place(request)).await.unwrap();
    assert_eq!(ended.unwrap_err().code(), Code::DeadlineExceeded);
    service.seen().sent(3);
}

/// Pushback in the head of an answer whose code comes in the trailers; and in both, of which one says no.
#[tokio::test(start_paused = true)]
async fn pushback_in_two_places() {
    let gaps = |head_says: &'static str, trailers_say: &'static str| async move {
        let first = head()
            .header("grpc-retry-pushback-ms", head_says)
            .ends(GrpcCode::Unavailable)
            .trailer("grpc-retry-pushback-ms", trailers_say);
        let (mut client, service) = scripted([first, done()], idempotent());
        let _ = client.place(order()).await;
        service.seen().gaps()
    };
    for (one, two) in [("-1", "200"), ("200", "-1"), ("soon", "0")] {
        assert_eq!(gaps(one, two).await, [Duration::ZERO; 0], "{one} {two}: one of them said no");
    }
    // Two numbers are no number.
    for (one, two) in [("300", "2000"), ("2000", "300")] {
        assert_eq!(gaps(one, two).await, [Duration::ZERO; 0], "{one} {two}");
    }
}

/// OK, with a pushback: there is nothing to push back.
#[tokio::test(start_paused = true)]
async fn pushback_on_success_is_nothing() {
    let (mut client, service) = scripted([done().header("grpc-retry-pushback-ms", "-1")], idempotent());
    client.place(order()).await.unwrap();
    service.seen().sent(1);
}

/// The caller forwards what it was sent.
#[tokio::test(start_paused = true)]
async fn headers_of_another_hop_are_not_passed_off_as_ours() {
    let (mut client, service) = scripted([unavailable(), done()], idempotent());
    let mut request = order();
    request.metadata_mut().insert("grpc-previous-rpc-attempts", "7".parse().unwrap());
    client.place(request).await.unwrap();
    let seen = service.seen();
    let seen = &seen.sent(2).requests;
    assert!(seen[0].headers.get("grpc-previous-rpc-attempts").is_none());
    assert_eq!(seen[1].headers["grpc-previous-rpc-attempts"], "1");
    assert_eq!(seen[1].headers.get_all("grpc-previous-rpc-attempts").iter().count(), 1);
}

/// The stream of the caller fails in the middle: it is the caller's, and not repeated.
#[tokio::test]
async fn a_callers_stream_that_panics_or_ends_early() {
    let (orders, addr) = serve([]).await;
    let mut client = Client::new(redial::grpc::channel(channel(addr), idempotent()));
    let answer = soon(client.collect(stream::empty())).await;
    eprintln!("an empty stream: {answer:?}");
    assert_eq!(orders.seen.lock().unwrap().len(), 1);
}

/// Bidi, of which the server ends with a failure in the middle: what was seen is the caller's.
#[tokio::test]
async fn a_stream_cut_by_the_server_is_not_repeated() {
    let cut =
        head().body(framed("one")).body(framed("two")).reset_stream_within(redial::testing::Reason::InternalError);
    let server = Server::http2([cut, done()]);
    let mut client = Client::new(redial::grpc::channel(channel(server.addr()), idempotent()));
    let mut messages =
        soon(client.chat(stream::iter([Bytes::from("a"), Bytes::from("b")]))).await.unwrap().into_inner();
    let mut got = Vec::new();
    let ended = loop {
        match soon(messages.message()).await {
            Ok(Some(message)) => got.push(message),
            Ok(None) => panic!("it was cut"),
            Err(status) => break status,
        }
    };
    assert_eq!(got, ["one", "two"]);
    assert_eq!(ended.code(), Code::Internal);
    server.seen().sent(1);
}

/// A stream that is read slowly while the total of the call passes.
#[tokio::test]
async fn a_slow_reader_keeps_its_stream() {
    let (_, addr) = serve([]).await;
    let timeouts = Timeouts { attempt: Duration::from_millis(200), total: Duration::from_millis(300) };
    let policy = redial::StandardPolicy::new("shop", timeouts, Transient::none()).unwrap();
    let mut client = Client::new(redial::grpc::channel(channel(addr), policy));
    let words = stream::iter((0..50).map(|_| Bytes::from(vec![7; 10_000])));
    let mut messages = soon(client.chat(words)).await.unwrap().into_inner();
    let mut count = 0;
    while let Some(message) = soon(messages.message()).await.unwrap() {
        assert_eq!(message.len(), 10_000);
        count += 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(count, 50);
}

/// Many at once, of one channel.
#[tokio::test]
async fn clones_share_the_budget() {
    let server = Server::http2([unavailable()]);
    let policy = builder().budget(Budget::usual()).idempotent("orders have numbers").build().unwrap();
    let client = Client::new(redial::grpc::channel(channel(server.addr()), policy));
    let calls = (0..40).map(|_| {
        let mut client = client.clone();
        async move { client.place(order()).await }
    });
    soon(futures_util::future::join_all(calls)).await;
    let sent = server.seen().requests.len();
    assert!((40..=46).contains(&sent), "{sent}");
}

/// An answer of HTTP that is no gRPC: a proxy's page, with status 200.
#[tokio::test(start_paused = true)]
async fn a_page_of_html_is_no_success_that_is_silent() {
    let page = Reply::ok("<html>down for maintenance</html>").header("content-type", "text/html");
    let (mut client, service) = scripted([page, done()], idempotent());
    let status = client.place(order()).await.unwrap_err();
    eprintln!("{status:?}");
    service.seen().sent(1);
}

/// A unary answer that has no message but OK.
#[tokio::test(start_paused = true)]
async fn ok_without_a_message_is_the_clients_to_judge() {
    let alone = {
        let service = redial::testing::service([head().ends(GrpcCode::Ok)]);
        let mut client =
            Client::new(tower::ServiceExt::<http::Request<Body>>::map_err(service, |error: redial::BoxError| {
                Status::from_error(error)
            }));
        client.place(order()).await.unwrap_err()
    };
    let (mut client, _) = scripted([head().ends(GrpcCode::Ok)], idempotent());
    let ours = client.place(order()).await.unwrap_err();
    assert_eq!((ours.code(), ours.message()), (alone.code(), alone.message()));
}
