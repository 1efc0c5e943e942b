//! Faults before there is a connection: no request was sent, whatever went wrong.

use std::future::{self, Ready};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::{HttpConnector, dns::Name};
use rustls::{ClientConfig, RootCertStore, ServerConfig, crypto::ring};
use tower::{ServiceBuilder, ServiceExt};

use crate::common::Server;
use crate::common::raw_h1::{self, Act, send};
use crate::scene::{BoxError, Failed, fail, http1, over, post};

scenes! {
    c044_connect_refused: "connection refused" => "connect unsent", [0, 0, 0], async {
        // Bound but not listening, so that nobody else takes the port meanwhile.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let url = format!("http://{}/", socket.local_addr().unwrap());
        Failed::alone(fail(&http1(), post(&url)).await)
    };

    c044_connect_timeout: "no answer to the connector's SYN" => "connect unsent", [0, 0, 0], async {
        let full = FullBacklog::new();
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(Duration::from_millis(50)));
        Failed::alone(fail(&over(connector), post(&format!("http://{}/", full.addr))).await)
    };

    c044_timeout_around_the_connector: "a timeout layer around the connector fires"
        => "connect unsent", [0, 0, 0], async {
        let full = FullBacklog::new();
        let connector = ServiceBuilder::new()
            .timeout(Duration::from_millis(50))
            .service(HttpConnector::new())
            .map_future(Box::pin);
        Failed::alone(fail(&over(connector), post(&format!("http://{}/", full.addr))).await)
    };

    c048_lookup_failed: "the resolver fails with its own error" => "dns unsent", [0, 0, 0], async {
        let error = |_| BoxError::from("temporary failure in name resolution");
        Failed::alone(fail(&over(HttpConnector::new_with_resolver(Resolver(error))), post("http://x/")).await)
    };

    c048_lookup_failed_like_the_system: "the resolver fails as getaddrinfo does"
        => "dns unsent", [0, 0, 0], async {
        let error = |_| io::Error::other("failed to lookup address information").into();
        Failed::alone(fail(&over(HttpConnector::new_with_resolver(Resolver(error))), post("http://x/")).await)
    };

    lookup_without_addresses: "the resolver finds no address" => "connect unsent", [0, 0, 0], async {
        Failed::alone(fail(&over(HttpConnector::new_with_resolver(Nowhere)), post("http://x/")).await)
    };

    unsupported_scheme: "https over a connector without TLS" => "connect unsent permanent", [0, 0, 0], async {
        Failed::alone(fail(&http1(), post("https://127.0.0.1:1/")).await)
    };

    unsupported_scheme_over_tls: "gopher over a connector with TLS" => "connect unsent permanent", [0, 0, 0], async {
        Failed::alone(fail(&https(), post("gopher://127.0.0.1:1/")).await)
    };

    c048_name_that_is_none: "a host name that no certificate can have"
        => "connect unsent permanent", [0, 0, 0], async {
        Failed::alone(fail(&https(), post("https://-.-/")).await)
    };

    relative_uri: "a request without a host" => "protocol unsent permanent", [0, 0, 0], async {
        Failed::alone(fail(&http1(), post("/x")).await)
    };

    c045_certificate_rejected: "a self-signed certificate"
        => "tls unsent permanent", [1, 0, 0], async {
        let server = self_signed().await;
        Failed::new(fail(&https(), post(&server.url("https"))).await, &server)
    };

    c046_reset_in_the_handshake: "RST after the ClientHello" => "connect unsent", [1, 0, 0], async {
        let server = raw_h1::start(vec![vec![Act::Read(5), Act::Reset]]).await;
        Failed::new(fail(&https(), post(&server.url("https"))).await, &server)
    };

    c046_closed_in_the_handshake: "FIN after the ClientHello" => "connect unsent", [1, 0, 0], async {
        let server = raw_h1::start(vec![vec![Act::Read(5), Act::Close]]).await;
        Failed::new(fail(&https(), post(&server.url("https"))).await, &server)
    };

    plain_http_in_the_handshake: "plain HTTP in answer to the ClientHello"
        => GARBLED_HANDSHAKE, [1, 0, 0], async {
        let nonsense = send("HTTP/1.1 400 Bad Request\r\n\r\n");
        let server = raw_h1::start(vec![vec![Act::Read(5), nonsense, Act::Close]]).await;
        Failed::new(fail(&https(), post(&server.url("https"))).await, &server)
    };

    alert_in_the_handshake: "the alert handshake_failure in answer to the ClientHello"
        => "tls unsent permanent", [1, 0, 0], async {
        let alert = Act::Send(vec![21, 3, 3, 0, 2, 2, 40]);
        let server = raw_h1::start(vec![vec![Act::Read(5), alert, Act::Close]]).await;
        Failed::new(fail(&https(), post(&server.url("https"))).await, &server)
    };
}

/// Only rustls's own error tells garbled records, which may pass, from a verdict.
const GARBLED_HANDSHAKE: &str = if cfg!(feature = "rustls") { "tls unsent" } else { "tls unsent permanent" };

/// Without a certificate to trust.
fn https() -> hyper_util::client::legacy::Client<hyper_rustls::HttpsConnector<HttpConnector>, crate::scene::Body> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    over(HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().build())
}

async fn self_signed() -> Server {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = made.signing_key.serialize_der().try_into().unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    Server::start(move |stream, _, tally| {
        let handshake = acceptor.accept(stream);
        async move {
            if handshake.await.is_ok() {
                tally.add(|seen| seen.requests += 1);
            }
        }
    })
    .await
}

/// A port whose queue of connections is full: one more SYN is not answered.
struct FullBacklog {
    addr: SocketAddr,
    _listener: TcpListener,
    _queued: Vec<TcpStream>,
}

impl FullBacklog {
    fn new() -> FullBacklog {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        socket_backlog_of_one(&listener);
        let mut queued = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&addr, Duration::from_millis(300)) {
            queued.push(stream);
            assert!(queued.len() < 1000, "the queue never fills");
        }
        FullBacklog { addr, _listener: listener, _queued: queued }
    }
}

/// Listening again sets the length of the queue.
fn socket_backlog_of_one(listener: &TcpListener) {
    socket2::SockRef::from(listener).listen(1).unwrap();
}

#[derive(Clone)]
struct Resolver(fn(Name) -> BoxError);

impl tower_service::Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        future::ready(Err((self.0)(name)))
    }
}

/// Finds nothing, without an error.
#[derive(Clone)]
struct Nowhere;

impl tower_service::Service<Name> for Nowhere {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        future::ready(Ok(Vec::new().into_iter()))
    }
}

/// Several calls share one HTTP/2 connection that cannot be made: the one that makes it is told why, the others only
/// that it was not. None of them was sent, and none of them is final.
#[tokio::test]
async fn a_shared_connection_that_fails_is_worth_another_try_for_all_who_waited() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let open = std::sync::Arc::clone(&gate);
    let connector = tower::service_fn(move |_: http::Uri| {
        let open = std::sync::Arc::clone(&open);
        Box::pin(async move {
            let _ = open.acquire().await;
            Err::<hyper_util::rt::TokioIo<tokio::net::TcpStream>, _>(std::io::Error::from_raw_os_error(111))
        })
    });
    let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
        .http2_only(true)
        .build::<_, http_body_util::Full<bytes::Bytes>>(connector);
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let request = http::Request::post("http://nobody.example/").body(http_body_util::Full::default()).unwrap();
            tokio::spawn(client.request(request))
        })
        .collect();
    // All wait for the same connection before it fails.
    tokio::task::yield_now().await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    gate.add_permits(1000);
    let mut told_why = 0;
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        let fault = redial::Fault::read(&error);
        assert_eq!(
            (fault.kind(), fault.is_unsent(), fault.is_permanent()),
            (redial::FaultKind::Connect, true, false),
            "{}",
            crate::scene::chain(&error)
        );
        let source = std::error::Error::source(&error).expect("a connect error with its cause");
        told_why += usize::from(source.downcast_ref::<std::io::Error>().is_some());
    }
    assert!((1..4).contains(&told_why), "{told_why} of 4 were told why: the others were not tested");
}
