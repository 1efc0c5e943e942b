//! What a caller learns from an error: the same after one attempt and after several, and no secrets.

mod common;
mod support;

use std::{error::Error as StdError, fmt, io, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{Empty, Full};
use hyper::body::Incoming;
use redial::{
    AttemptTimedOut, BoxError, Error, RetryLayer, StopReason, Timeouts, Transient,
    policy::StandardPolicyBuilder,
    testing::{Reason, Reply, Server},
};
use support::{Wire, bodies, client_with, policy, policy_within, put, request, soon};
use tower::{Layer, ServiceExt, service_fn};

/// With a password, and a key in the query.
fn secret_url(address: std::net::SocketAddr) -> String {
    format!("http://user:s3cret@{address}/p?api_key=K123&x=1")
}

async fn fails(policy: StandardPolicyBuilder, url: &str) -> Error {
    fails_over(Wire::Http1, policy, url).await
}

async fn fails_over(wire: Wire, policy: StandardPolicyBuilder, url: &str) -> Error {
    let request = request(Method::GET, url, Empty::<Bytes>::new());
    soon(client_with(wire, policy).oneshot(request)).await.map(drop).unwrap_err()
}

fn made(error: &Error) -> usize {
    error.report().expect("a report").attempts().len()
}

/// One line that names the provider, the operation, the attempts, the time and the cause; and no secret in any link
/// that is ours, in whatever way it is shown.
fn is_one_line_without_secrets(error: &Error, cause: &str) {
    let line = error.to_string();
    assert!(line.starts_with("orders create: "), "{line}");
    assert!(line.contains(&format!("after {} attempt", made(error))), "{line}");
    assert!(line.contains(" in ") && line.ends_with(cause) && !line.contains('\n'), "{line}");
    let mut shown = vec![line, format!("{error:?}"), format!("{error:#?}"), format!("{:?}", error.report())];
    let mut link: Option<&(dyn StdError + 'static)> = error.source();
    while let Some(error) = link {
        // Ours are private for the most part: known by what they say.
        if error.is::<AttemptTimedOut>() || error.is::<Error>() || error.to_string() == "the request's body failed" {
            shown.extend([error.to_string(), format!("{error:?}")]);
        }
        link = error.source();
    }
    for text in shown {
        for secret in ["s3cret", "user:", "K123", "api_key"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

#[tokio::test]
async fn a_refused_connection_is_a_connect_error_after_any_number_of_attempts() {
    let nobody = Server::refusing();
    for wire in support::WIRES {
        for attempts in [1, 3] {
            let error = fails_over(wire, policy().attempts(attempts), &secret_url(nobody.addr())).await;
            assert!(error.is_connect() && !error.is_timeout() && error.is_exhausted(), "{error:?}");
            assert_eq!(made(&error), attempts as usize);
            // The client's own error is there; nothing of HTTP had begun.
            assert!(error.find_source::<hyper_util::client::legacy::Error>().is_some_and(|error| error.is_connect()));
            assert!(error.find_source::<hyper::Error>().is_none());
            assert_eq!(error.find_source::<io::Error>().map(io::Error::kind), Some(io::ErrorKind::ConnectionRefused));
            is_one_line_without_secrets(&error, &format!("(os error {})", refused()));
        }
    }
}

/// Its number differs between systems.
fn refused() -> i32 {
    let nobody = Server::refusing();
    std::net::TcpStream::connect(nobody.addr()).unwrap_err().raw_os_error().unwrap()
}

#[tokio::test]
async fn a_silent_server_is_a_timeout_after_any_number_of_attempts() {
    for attempts in [1, 3] {
        let server = Server::silent();
        let timeouts = Timeouts { attempt: Duration::from_millis(100), total: Duration::from_secs(20) };
        let error = fails(policy_within(timeouts).attempts(attempts), &secret_url(server.addr())).await;
        assert!(error.is_timeout() && !error.is_connect() && error.is_exhausted(), "{error:?}");
        assert!(!error.is_deadline(), "the attempt's, not the call's");
        assert_eq!(made(&error), attempts as usize);
        assert_eq!(error.find_source::<AttemptTimedOut>().map(AttemptTimedOut::after), Some(timeouts.attempt));
        is_one_line_without_secrets(&error, "no response head within the attempt's 100ms");
    }
}

/// The total ends the call in the first attempt, and in the second.
#[tokio::test]
async fn the_calls_own_end_is_a_timeout_too() {
    for (attempt, total) in [(900, 1000), (400, 500)] {
        for attempts in [1, 3] {
            let server = Server::silent();
            let timeouts = Timeouts { attempt: Duration::from_millis(attempt), total: Duration::from_millis(total) };
            let error = fails(policy_within(timeouts).attempts(attempts), &secret_url(server.addr())).await;
            assert!(error.is_timeout() && !error.is_connect(), "{error:?}");
            assert_eq!(error.is_deadline(), attempts > 1, "{error:?}");
            let cause = if attempts > 1 { "the call's total of" } else { "within the attempt's" };
            assert!(error.to_string().contains(cause), "{error}");
        }
    }
}

#[tokio::test]
async fn a_closed_connection_is_neither_and_leads_to_hypers_error() {
    for attempts in [1, 3] {
        let server = Server::http1(Reply::close());
        let error = fails(policy().attempts(attempts), &secret_url(server.addr())).await;
        assert!(!error.is_timeout() && !error.is_connect() && error.is_exhausted(), "{error:?}");
        assert_eq!(made(&error), attempts as usize);
        assert!(error.find_source::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message));
        is_one_line_without_secrets(&error, "connection closed before message completed");
    }
}

/// HTTP/2's own error is found beneath hyper's.
#[tokio::test]
async fn a_reset_stream_leads_to_hypers_error_and_to_h2s() {
    for attempts in [1, 3] {
        let server = Server::http2(Reply::reset_stream(Reason::Cancel));
        // HTTP/2 carries the userinfo in `:authority`; that is the client's affair.
        let error = fails_over(Wire::Http2, policy().attempts(attempts), &secret_url(server.addr())).await;
        assert_eq!(made(&error), attempts as usize);
        assert!(error.find_source::<hyper::Error>().is_some(), "{error:?}");
        assert_eq!(error.find_source::<h2::Error>().and_then(h2::Error::reason), Some(h2::Reason::CANCEL));
        is_one_line_without_secrets(&error, "stream error received: stream no longer needed");
    }
}

/// A client that quotes the whole URL in its error, as many do.
#[derive(Debug)]
struct Talkative(String);

impl fmt::Display for Talkative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error sending request for url ({})\nno route", self.0)
    }
}

impl StdError for Talkative {}

#[tokio::test]
async fn c170_a_clients_error_that_quotes_the_url() {
    let url = secret_url(([127, 0, 0, 1], 80).into());
    let client = service_fn(|request: Request<redial::AttemptBody<Full<Bytes>>>| async move {
        Err::<Response<Incoming>, _>(BoxError::from(Talkative(request.uri().to_string())))
    });
    let error = RetryLayer::new(policy().build().unwrap())
        .layer(client)
        .oneshot(put(&url, Full::new(Bytes::new())))
        .await
        .unwrap_err();
    assert_eq!(error.stop(), Some(StopReason::Permanent), "nobody listed it");
    assert!(error.find_source::<Talkative>().is_some_and(|error| error.0 == url), "untouched");
    is_one_line_without_secrets(&error, "no route");
}

/// The caller's own body fails with an error that quotes a URL.
#[tokio::test]
async fn c170_a_bodys_error_that_quotes_the_url() {
    for wire in support::WIRES {
        let server = match wire {
            Wire::Http1 => Server::http1(Reply::stall()),
            Wire::Http2 => Server::http2(Reply::stall()),
        };
        let url = secret_url(server.addr());
        let body = bodies::streaming([Err(Talkative(url.clone()).into())]);
        let error = soon(client_with(wire, policy()).oneshot(put(&url, body))).await.unwrap_err();
        assert!(error.find_source::<Talkative>().is_some(), "{wire:?}");
        is_one_line_without_secrets(&error, "no route");
    }
}

/// Nothing is listed: what would be transient elsewhere is final, and says the same of itself.
#[tokio::test]
async fn what_it_is_does_not_depend_on_what_is_listed() {
    let timeouts = Timeouts { attempt: Duration::from_millis(100), total: Duration::from_secs(20) };
    let nothing = || redial::StandardPolicy::builder("orders", timeouts, Transient::none()).operation("create");
    let nobody = Server::refusing();
    let refused = fails(nothing(), &secret_url(nobody.addr())).await;
    assert!(refused.is_connect() && refused.is_permanent() && made(&refused) == 1);
    let server = Server::silent();
    let silent = fails(nothing(), &secret_url(server.addr())).await;
    assert!(silent.is_timeout() && silent.is_permanent() && made(&silent) == 1);
}
