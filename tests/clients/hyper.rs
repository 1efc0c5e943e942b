//! The client of one call: HTTP/1.1 and 2, with and without TLS.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use redial::{
    CallReport, Reach, Routes, StandardPolicy, StopReason, Timeouts,
    testing::{Reply, Server},
};
use rustls::{ClientConfig, RootCertStore, ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::{ended, ms, policy, within};

fn post(url: &str) -> Request<Full<Bytes>> {
    Request::post(url).body(Full::from("one more")).unwrap()
}

#[tokio::test]
async fn a_call_is_repeated_over_http() {
    let server = Server::http1([Reply::status(503), Reply::ok("an order")]);
    let client = redial::hyper::client(policy().build().unwrap());
    let get = Request::get(server.url("/")).body(Full::<Bytes>::default()).unwrap();
    let response = client.oneshot(get).await.unwrap();
    assert_eq!(response.extensions().get::<CallReport>().unwrap().attempts().len(), 2);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "an order");
}

#[tokio::test]
async fn a_connection_that_is_refused_was_not_sent_on() {
    let refusing = Server::refusing();
    let client = redial::hyper::client(policy().build().unwrap());
    let error = client.oneshot(post(&refusing.url("/"))).await.unwrap_err();
    assert_eq!(ended(&error), (3, Some(StopReason::Attempts), vec![Reach::NotSent; 3]));
    assert!(error.is_connect());
}

#[tokio::test]
async fn a_connection_is_given_half_of_an_attempt() {
    // It takes the handshake's first word, and never answers.
    let silent = Server::silent();
    let timeouts = Timeouts { attempt: ms(400), total: ms(10_000) };
    let client = redial::hyper::client(within(timeouts).attempts(2).build().unwrap());
    let began = Instant::now();
    let error = client.oneshot(post(&silent.url_with("https", "/"))).await.unwrap_err();
    assert_eq!(ended(&error), (2, Some(StopReason::Attempts), vec![Reach::NotSent; 2]));
    assert!(error.is_connect(), "{error}");
    assert!(error.report().unwrap().attempts()[0].duration < ms(400), "shorter than the attempt");
    assert!(began.elapsed() >= ms(400));
}

/// Serves over TLS what it is asked over, and answers with the version; the certificate is its own.
async fn tls_server(alpn: &[&[u8]]) -> (String, RootCertStore) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let answer = service_fn(|request: Request<Incoming>| async move {
                    let version = format!("{:?}", request.version());
                    Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::from(version)))
                });
                let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    });
    (url, roots)
}

fn trusting(roots: RootCertStore) -> ClientConfig {
    ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

#[tokio::test]
async fn own_roots_and_the_version_that_the_server_agrees_to() {
    for (alpn, version) in [
        (&[b"h2".as_slice(), b"http/1.1"] as &[&[u8]], Version::HTTP_2),
        (&[b"http/1.1".as_slice()], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ] {
        let (url, roots) = tls_server(alpn).await;
        let connector = redial::hyper::connector(trusting(roots), Duration::from_secs(2));
        let routes = Routes::builder(StandardPolicy::unretried("other", Duration::from_secs(10)).unwrap());
        let client = redial::hyper::with_connector(connector, routes.build().unwrap());
        let response = client.oneshot(post(&url)).await.unwrap();
        assert_eq!(response.version(), version);
        let said = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(said, format!("{version:?}"));
    }
}

#[tokio::test]
async fn a_certificate_that_nobody_trusts_is_a_verdict() {
    let (url, _) = tls_server(&[]).await;
    let client = redial::hyper::client(policy().build().unwrap());
    let error = client.oneshot(post(&url)).await.unwrap_err();
    assert_eq!(ended(&error), (1, Some(StopReason::Permanent), vec![Reach::NotSent]));
    assert!(error.is_connect() && error.find_source::<rustls::Error>().is_some(), "{error}");
}
