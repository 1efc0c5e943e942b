//! Real reports of connections, through the layer: what is sent again, how often, and what else lives on.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connect, HttpConnector},
    },
    rt::TokioExecutor,
};
use redial::{
    AnswerBody, AttemptBody, Error, FaultKind, RetryLayer, StandardPolicy, StopReason,
    retry::Retry,
    testing::{LastStream, Reason, Reply, Resolver, Script, Server},
};
use rustls::{ClientConfig, RootCertStore, ServerConfig, crypto::ring};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::{Layer, ServiceExt};

use super::{End, call, common, order, post};
use crate::support::{Wire, attempts, client, policy, soon};

const LATER: Duration = Duration::from_millis(80);

type Over<C> = Retry<Client<C, AttemptBody<Full<Bytes>>>, StandardPolicy>;

fn over<C: Connect + Clone + Send + Sync + 'static>(connector: C) -> Over<C> {
    RetryLayer::new(policy().build().unwrap()).layer(Client::builder(TokioExecutor::new()).build(connector))
}

async fn text(answer: Result<Response<AnswerBody<Incoming>>, Error>) -> Bytes {
    soon(answer.unwrap().into_body().collect()).await.unwrap().to_bytes()
}

/// Of every method: not one byte of the request was sent.
#[tokio::test]
async fn c046_a_handshake_that_broke_is_made_again() {
    for reset in [true, false] {
        for method in [Method::POST, Method::PATCH, Method::GET] {
            let (server, client) = breaking_the_first_handshake(reset).await;
            let end = call(&client, order(method.clone(), &server.url("https"))).await;
            assert_eq!(end, End::ok(2), "{method}, reset: {reset}");
            let seen = server.seen();
            assert_eq!((seen.connections, seen.requests), (2, 1), "{method}, reset: {reset}");
        }
    }
}

#[tokio::test]
async fn c048_a_name_is_looked_up_again() {
    let server = Server::http1(Reply::ok(""));
    let resolver = Resolver::to(server.addr()).failing_first(1);
    let end = call(&over(HttpConnector::new_with_resolver(resolver.clone())), post("http://shop.example/x")).await;
    assert_eq!((end, resolver.lookups()), (End::ok(2), 2));
    server.seen().sent(1);

    // No answer tells a name that does not exist from a resolver that is down: as often as any other.
    let resolver = Resolver::failing();
    let client = over(HttpConnector::new_with_resolver(resolver.clone()));
    let error = soon(client.oneshot(post("http://shop.example/x"))).await.unwrap_err();
    assert_eq!((error.stop(), resolver.lookups()), (Some(StopReason::Attempts), 3));
    assert!(error.is_connect() && error.fault().is_some_and(|fault| fault.kind() == FaultKind::Dns));

    // What is no name is not looked up.
    let error = soon(over(https(RootCertStore::empty())).oneshot(post("https://-.-/"))).await.unwrap_err();
    assert_eq!((error.stop(), error.report().unwrap().attempts().len()), (Some(StopReason::Permanent), 1));
}

#[tokio::test]
async fn c049_a_connection_that_closes_without_an_answer() {
    for lost in [Reply::close(), Reply::half_head()] {
        let server = Server::http1([lost, Reply::ok("")]);
        assert_eq!(call(&client(Wire::Http1), order(Method::GET, &server.url("/x"))).await, End::ok(2));
        assert_eq!(server.seen().sent(2).connections, 2);
    }
}

/// The stream that `GOAWAY` leaves out goes to a new connection; the one within has its answer.
#[tokio::test]
async fn c109_what_a_goaway_leaves_out_is_sent_again() {
    let left_out = || Reply::stall().with_goaway(LastStream::Before, Reason::NoError);
    let first = || Reply::ok("first").after(LATER).close_after();
    let script = Script::new([left_out(), Reply::ok("second")]).route("/first", [first()]);
    let (server, client) = (Server::http2(script), client(Wire::Http2));
    let first = tokio::spawn(client.clone().oneshot(post(&server.url("/first"))));
    server.until(|seen| seen.complete() == 1).await;
    assert_eq!(call(&client, post(&server.url("/x"))).await, End::ok(2));
    let answer = soon(first).await.unwrap();
    assert_eq!(attempts(answer.as_ref().unwrap()), 1);
    assert_eq!(text(answer).await, "first");
    let connections: Vec<_> = server.seen().sent(3).requests.iter().map(|request| request.connection).collect();
    assert_eq!(connections, [1, 1, 2]);
}

/// However often it is left out, and where it may have been processed, by evidence alone.
#[tokio::test]
async fn c109_it_is_bounded_and_what_is_within_needs_evidence() {
    let server = Server::http2(Reply::goaway(LastStream::Before, Reason::NoError));
    assert_eq!(call(&client(Wire::Http2), post(&server.url("/x"))).await, End::failed(3, StopReason::Attempts));
    server.seen().sent(3);
    for (method, end) in [(Method::POST, End::failed(1, StopReason::NoEvidence)), (Method::GET, End::ok(2))] {
        let server = Server::http2([Reply::goaway(LastStream::This, Reason::NoError), Reply::ok("")]);
        assert_eq!(call(&client(Wire::Http2), order(method, &server.url("/x"))).await, end);
    }
}

#[tokio::test]
async fn c112_both_of_two_end_and_say_what_they_were_told() {
    let server = Server::http2(Reply::goaway(LastStream::Id(0), Reason::EnhanceYourCalm));
    let client = client(Wire::Http2);
    let calls = [0, 1].map(|_| tokio::spawn(client.clone().oneshot(post(&server.url("/x")))));
    for end in calls {
        let error = soon(end).await.unwrap().unwrap_err();
        assert_eq!((error.stop(), error.report().unwrap().attempts().len()), (Some(StopReason::Attempts), 3));
        assert!(error.report().unwrap().attempts()[..2].iter().all(|attempt| attempt.wait > Some(Duration::ZERO)));
        assert!(error.fault().is_some_and(|fault| fault.asks_calm()), "{error}");
        let told = error.find_source::<h2::Error>().and_then(h2::Error::reason);
        assert_eq!(told, Some(h2::Reason::ENHANCE_YOUR_CALM));
    }
    let connections = server.seen().connections;
    assert!((3..=6).contains(&connections), "{connections} connections");
}

/// A connection that is going away takes nothing new, and what it has goes on.
#[tokio::test]
async fn c114_what_comes_after_a_goaway_is_sent_elsewhere() {
    let held = Reply::ok("half").pause(LATER).body("whole").with_goaway(LastStream::Every, Reason::NoError);
    let (server, client) = (Server::http2([held, Reply::ok("new")]), client(Wire::Http2));
    let held = soon(client.clone().oneshot(post(&server.url("/x")))).await;
    let new = soon(client.oneshot(post(&server.url("/x")))).await;
    assert_eq!((text(new).await, text(held).await), ("new".into(), "halfwhole".into()));
    let connections: Vec<_> = server.seen().sent(2).requests.iter().map(|request| request.connection).collect();
    assert_eq!(connections, [1, 2]);
}

fn https(roots: RootCertStore) -> HttpsConnector<HttpConnector> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().build()
}

/// Ends the first connection after the beginning of its ClientHello, and answers on every other; with a client that
/// trusts it.
async fn breaking_the_first_handshake(reset: bool) -> (common::Server, Over<HttpsConnector<HttpConnector>>) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = made.signing_key.serialize_der().try_into().unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let server = common::Server::start(move |mut stream, number, tally| {
        let acceptor = acceptor.clone();
        async move {
            if number == 0 {
                let _ = stream.read_exact(&mut [0; 5]).await;
                if reset {
                    let _ = stream.set_zero_linger();
                } else {
                    let _ = stream.shutdown().await;
                    let _ = stream.read_to_end(&mut Vec::new()).await;
                }
                return;
            }
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let mut request = Vec::new();
            while !request.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
                if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                    return;
                }
            }
            tally.add(|seen| seen.requests += 1);
            let _ = stream.write_all(b"HTTP/1.1 200 X\r\ncontent-length: 0\r\n\r\n").await;
            // The rest of the request, until the client goes.
            let _ = stream.read_to_end(&mut request).await;
        }
    })
    .await;
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    (server, over(https(roots)))
}
