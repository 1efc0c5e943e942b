//! A server of tonic's own, and calls of all four kinds.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use redial::{CallReport, GrpcCode, Transient, grpc::Commit};
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
    sync::mpsc,
};
use tonic::{
    Code, Request, Response, Status, Streaming,
    body::Body,
    metadata::MetadataMap,
    server::{Grpc, NamedService, StreamingService},
    transport::Server,
};
use tower::Service;

use super::support::*;

/// What becomes of one call.
enum Step {
    /// A status, before anything else.
    Fail(Status),
    /// These, whenever they come.
    Send(Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>),
    /// As many messages as came, in one.
    Count,
    /// Each message, as it comes.
    Echo,
    /// Nothing, ever.
    Stall,
}

fn send<const N: usize>(items: [Result<&'static str, Status>; N]) -> Step {
    Step::Send(Box::pin(stream::iter(items.map(|item| item.map(Bytes::from)))))
}

/// The service, written by hand. Clones are one.
#[derive(Clone, Default)]
struct Orders(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    steps: VecDeque<Step>,
    seen: Vec<MetadataMap>,
}

impl NamedService for Orders {
    const NAME: &'static str = "shop.Orders";
}

type Items = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;
type Answer = Pin<Box<dyn Future<Output = Result<Response<Items>, Status>> + Send>>;

impl StreamingService<Bytes> for Orders {
    type Response = Bytes;
    type ResponseStream = Items;
    type Future = Answer;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Answer {
        let mut state = self.0.lock().unwrap();
        state.seen.push(request.metadata().clone());
        let step = state.steps.pop_front().unwrap_or_else(|| Step::Fail(Status::internal("one too many")));
        let mut messages = request.into_inner();
        Box::pin(async move {
            let items: Items = match step {
                Step::Fail(status) => return Err(status),
                Step::Send(items) => items,
                Step::Count => {
                    let mut count = 0;
                    while messages.message().await?.is_some() {
                        count += 1;
                    }
                    Box::pin(stream::iter([Ok(Bytes::from(count.to_string()))]))
                }
                Step::Echo => Box::pin(messages),
                Step::Stall => std::future::pending().await,
            };
            Ok(Response::new(items))
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
        // To the server all four kinds look alike.
        Box::pin(async move { Ok(Grpc::new(Raw).streaming(orders, request).await) })
    }
}

/// A server on a port of its own, with a runtime of its own: dropping it kills every connection, as a crash does.
struct Running {
    orders: Orders,
    addr: SocketAddr,
    runtime: Option<Runtime>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Running {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::on(([127, 0, 0, 1], 0).into(), steps).expect("a free port")
    }

    fn on(addr: SocketAddr, steps: impl IntoIterator<Item = Step>) -> io::Result<Self> {
        let orders = Orders::default();
        orders.0.lock().unwrap().steps.extend(steps);
        let listener = std::net::TcpListener::bind(addr)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let router = Server::builder().add_service(orders.clone());
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            let incoming = stream::unfold(listener, |listener| async {
                let accepted = listener.accept().await.map(|(stream, _)| stream);
                Some((accepted, listener))
            });
            let _ = router.serve_with_incoming(incoming).await;
        });
        Ok(Running { orders, addr, runtime: Some(runtime) })
    }

    fn client(&self, policy: redial::StandardPolicy) -> Client<impl GrpcChannel> {
        Client::new(redial::grpc::channel(channel(self.addr), policy))
    }

    /// The metadata of each call that arrived.
    fn seen(&self) -> Vec<MetadataMap> {
        self.orders.0.lock().unwrap().seen.clone()
    }

    #[track_caller]
    fn sent(&self, calls: usize) {
        assert_eq!(self.seen().len(), calls);
    }
}

/// The type of a retrying channel, for those who do not name it.
trait GrpcChannel:
    Service<
        http::Request<Body>,
        Response = http::Response<redial::AnswerBody<redial::grpc::ResponseBody<Body>>>,
        Error = Status,
        Future: Send,
    > + Clone
    + Send
    + 'static
{
}

impl<T> GrpcChannel for T where
    T: Service<
            http::Request<Body>,
            Response = http::Response<redial::AnswerBody<redial::grpc::ResponseBody<Body>>>,
            Error = Status,
            Future: Send,
        > + Clone
        + Send
        + 'static
{
}

fn unavailable() -> Status {
    Status::unavailable("not just now")
}

#[tokio::test]
async fn unary() {
    let server = Running::new([Step::Fail(unavailable()), Step::Fail(unavailable()), send([Ok("done")])]);
    let mut client = server.client(idempotent());
    let mut request = order();
    request.set_timeout(Duration::from_secs(20));
    let answer = soon(client.place(request)).await.unwrap();
    assert_eq!(answer.get_ref(), "done");
    assert_eq!(answer.extensions().get::<CallReport>().unwrap().attempts().len(), 3);
    let seen = server.seen();
    let text = |name: &str| -> Vec<_> {
        seen.iter().map(|seen| seen.get(name).map(|value| value.to_str().unwrap().to_owned())).collect()
    };
    assert_eq!(text("grpc-previous-rpc-attempts"), [None, Some("1".to_owned()), Some("2".to_owned())]);
    let left: Vec<u64> =
        text("grpc-timeout").iter().map(|left| left.as_ref().unwrap().trim_end_matches('u').parse().unwrap()).collect();
    assert!(left[0] <= 20_000_000 && left.is_sorted_by(|one, next| *one >= next + 100_000), "{left:?}");
}

#[tokio::test]
async fn unary_without_evidence() {
    let server = Running::new([Step::Fail(unavailable()), send([Ok("done")])]);
    let status = soon(server.client(builder().build().unwrap()).place(order())).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "not just now"));
    server.sent(1);
}

#[tokio::test]
async fn unary_with_a_status_in_trailers() {
    let server = Running::new([send([Err(unavailable())]), send([Ok("half"), Err(unavailable())])]);
    let status = soon(server.client(idempotent()).place(order())).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "not just now"));
    server.sent(2);

    let server = Running::new([send([Ok("half"), Err(unavailable())]), send([Ok("done")])]);
    let mut request = order();
    request.extensions_mut().insert(Commit::Status);
    assert_eq!(soon(server.client(idempotent()).place(request)).await.unwrap().get_ref(), "done");
    server.sent(2);
}

#[tokio::test]
async fn pushback_from_a_servers_metadata() {
    let pushed = |value: &str| {
        let mut status = unavailable();
        status.metadata_mut().insert("grpc-retry-pushback-ms", value.parse().unwrap());
        Step::Fail(status)
    };
    let server = Running::new([pushed("250"), pushed("-1"), send([Ok("done")])]);
    let started = tokio::time::Instant::now();
    let status = soon(server.client(idempotent()).place(order())).await.unwrap_err();
    assert!(started.elapsed() >= Duration::from_millis(250));
    assert_eq!(report(&status).stop(), Some(redial::StopReason::ServerSaidNo));
    server.sent(2);
}

/// Both sides have the same deadline, and the server's CANCELLED does not come before it.
#[tokio::test]
async fn a_deadline_that_both_sides_know() {
    for _ in 0..5 {
        let server = Running::new([Step::Stall, Step::Stall]);
        let mut request = order();
        request.set_timeout(Duration::from_millis(80));
        let status = soon(server.client(idempotent()).place(request)).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded);
        assert_eq!(report(&status).stop(), Some(redial::StopReason::Deadline));
        assert!(server.seen().len() <= 1);
    }
}

#[tokio::test]
async fn a_stream_is_repeated_before_its_first_message_and_never_after() {
    let steps = [
        Step::Fail(unavailable()),
        send([Err(unavailable())]),
        send([Ok("one"), Ok("two"), Err(unavailable())]),
        send([Ok("never")]),
    ];
    let server = Running::new(steps);
    let mut messages = soon(server.client(idempotent()).watch(order())).await.unwrap().into_inner();
    assert_eq!(soon(messages.message()).await.unwrap().unwrap(), "one");
    assert_eq!(soon(messages.message()).await.unwrap().unwrap(), "two");
    assert_eq!(soon(messages.message()).await.unwrap_err().code(), Code::Unavailable);
    server.sent(3);
}

/// The second message is sent only after the first has been seen.
#[tokio::test]
async fn a_stream_yields_each_message_at_once() {
    let (said, mut say) = mpsc::channel::<Result<Bytes, Status>>(1);
    let items = stream::poll_fn(move |cx| say.poll_recv(cx));
    let server = Running::new([Step::Fail(unavailable()), Step::Send(Box::pin(items))]);
    said.send(Ok(Bytes::from("one"))).await.unwrap();
    let mut messages = soon(server.client(idempotent()).watch(order())).await.unwrap().into_inner();
    for word in ["one", "two", "three"] {
        assert_eq!(soon(messages.message()).await.unwrap().unwrap(), word);
        let next = if word == "one" { "two" } else { "three" };
        said.send(Ok(Bytes::from(next))).await.unwrap();
    }
    server.sent(2);
}

/// Long after the attempt's time and the call's total: neither is the stream's.
#[tokio::test]
async fn a_stream_outlives_the_timeouts_of_the_call() {
    let timeouts = redial::Timeouts { attempt: Duration::from_millis(500), total: Duration::from_secs(1) };
    let policy = redial::StandardPolicy::new("shop", timeouts, Transient::none()).unwrap();
    let items = stream::iter(["one", "two", "three"]).then(|word| async move {
        if word != "one" {
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
        Ok(Bytes::from(word))
    });
    let server = Running::new([Step::Send(Box::pin(items))]);
    let mut messages = soon(server.client(policy).watch(order())).await.unwrap().into_inner();
    for word in ["one", "two", "three"] {
        assert_eq!(soon(messages.message()).await.unwrap().unwrap(), word);
    }
    assert_eq!(soon(messages.message()).await.unwrap(), None);
}

#[tokio::test]
async fn a_clients_stream_is_repeated_from_its_start() {
    let words = || {
        stream::iter(["a", "b", "c"].map(Bytes::from)).then(|word| async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            word
        })
    };
    // The first fails while the client still speaks.
    let server = Running::new([Step::Fail(unavailable()), Step::Count]);
    assert_eq!(soon(server.client(idempotent()).collect(words())).await.unwrap().get_ref(), "3");
    server.sent(2);
}

/// Each side speaks in turn, and the client only after it has the answer's head.
#[tokio::test]
async fn both_ways() {
    let server = Running::new([Step::Fail(unavailable()), Step::Echo]);
    let (said, mut say) = mpsc::channel::<Bytes>(1);
    let words = stream::poll_fn(move |cx| say.poll_recv(cx));
    let mut echoes = soon(server.client(idempotent()).chat(words)).await.unwrap().into_inner();
    for word in ["one", "two", "three"] {
        said.send(Bytes::from(word)).await.unwrap();
        assert_eq!(soon(echoes.message()).await.unwrap().unwrap(), word);
    }
    drop(said);
    assert_eq!(soon(echoes.message()).await.unwrap(), None);
    server.sent(2);
}

/// More than a tape holds, after the answer is the caller's: it streams on.
#[tokio::test]
async fn a_long_conversation_is_not_kept() {
    let server = Running::new([Step::Echo]);
    let words = stream::iter((0..40).map(|_| Bytes::from(vec![b'x'; 10_000])));
    let mut echoes = soon(server.client(idempotent()).chat(words)).await.unwrap().into_inner();
    let mut count = 0;
    while let Some(echo) = soon(echoes.message()).await.unwrap() {
        assert_eq!(echo.len(), 10_000);
        count += 1;
    }
    assert_eq!(count, 40);
}

/// A server that is killed within a call, and another on its port: repeated where that is safe.
#[tokio::test]
async fn a_killed_server_and_its_successor() {
    let patient = || builder().attempts_because(9, "the successor may be slow to come");
    let idempotent = patient().idempotent("orders have numbers").build().unwrap();
    for (policy, works) in [(idempotent, true), (patient().build().unwrap(), false)] {
        let first = Running::new([Step::Stall]);
        let addr = first.addr;
        let mut client = first.client(policy);
        let call = tokio::spawn(async move { client.place(order()).await });
        while first.seen().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(first);
        let successor = loop {
            if let Ok(successor) = Running::on(addr, [send([Ok("done")])]) {
                break successor;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        match soon(call).await.unwrap() {
            Ok(answer) => assert!(works && answer.get_ref() == "done"),
            Err(status) => {
                assert!(!works, "{status:?}");
                assert_eq!(status.code(), Code::Unavailable);
                assert!(report(&status).outcome_unknown());
            }
        }
        successor.sent(usize::from(works));
    }
}

/// What nobody named is final, by a real server too.
#[tokio::test]
async fn what_is_not_named_is_final() {
    let server = Running::new([Step::Fail(Status::not_found("no such order")), send([Ok("done")])]);
    let status = soon(server.client(idempotent()).place(order())).await.unwrap_err();
    assert_eq!((GrpcCode::from(status.code()), status.message()), (GrpcCode::NotFound, "no such order"));
    server.sent(1);
}
