//! Faults of connections: nothing was sent, whatever went wrong.

use std::sync::Arc;

use hyper_rustls::HttpsConnectorBuilder;
use redial::{FaultKind, testing::Resolver};
use rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::*;

#[tokio::test]
async fn a_port_that_refuses() {
    let server = Server::refusing();
    for _ in 0..2 {
        let answer = client(false).request(post(&server.url("/x"))).await;
        assert_eq!(soon(outcome(answer)).await, "connect unsent");
    }
    assert_eq!(server.seen().connections, 0);
    assert!(std::net::TcpListener::bind(server.addr()).is_err(), "nobody else gets the port");
}

#[tokio::test]
async fn a_port_that_never_speaks() {
    let server = Server::silent();
    let client = client(false);
    let answer = tokio::spawn(client.request(post(&server.url("/x"))));
    server.until(|seen| seen.connections == 1).await;
    let waited = tokio::time::timeout(Duration::from_millis(50), answer).await;
    assert_eq!(words(&waited.unwrap_err()), "timeout");
}

#[tokio::test]
async fn a_handshake_that_is_refused() {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().build();
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let server = Server::tls_refused();
    let answer = soon(client.request(post(&server.url_with("https", "/x")))).await;
    assert_eq!(outcome(answer).await, "tls unsent permanent");
    server.until(|seen| seen.ended == 1).await.sent(0);
}

#[tokio::test]
async fn a_name_that_is_not_resolved() {
    let server = Server::http1([Reply::ok("found")]);
    let resolver = Resolver::to(server.addr()).failing_first(2);
    let connector = HttpConnector::new_with_resolver(resolver.clone());
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        outcomes.push(soon(async { outcome(client.request(post("http://shop.example/x")).await).await }).await);
    }
    assert_eq!(outcomes, ["dns unsent", "dns unsent", OK]);
    assert_eq!(resolver.lookups(), 3);

    let connector = HttpConnector::new_with_resolver(Resolver::failing());
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let error = client.request(post("http://shop.example/x")).await.unwrap_err();
    assert_eq!(Fault::read(&error).kind(), FaultKind::Dns);
}

/// When the guard is gone, so is the server; when it was stopped, at once.
#[tokio::test]
async fn a_server_ends_with_its_guard() {
    let server = Server::http1([Reply::stall()]);
    let addr = server.addr();
    let answer = tokio::spawn(client(false).request(post(&server.url("/x"))));
    server.until(|seen| seen.complete() == 1).await;
    server.stop().await.sent(1);
    let broken = outcome(soon(answer).await.unwrap()).await;
    assert!(["closed", "reset"].contains(&&*broken), "{broken}");
    drop(std::net::TcpListener::bind(addr).expect("the port is free"));
}
