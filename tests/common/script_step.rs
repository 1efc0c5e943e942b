//! The steps of a script: answers, failures, silence.

use std::{io, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri};
use http_body_util::Full;
use redial::BoxError;

use super::ScriptBody;

/// What becomes of one request.
#[derive(Clone, Debug)]
pub struct Step {
    pub(super) after: Duration,
    pub(super) end: Ending,
}

#[derive(Clone, Debug)]
pub(super) enum Ending {
    Answer { status: StatusCode, headers: HeaderMap, body: ScriptBody },
    Fail(Failure),
    Hang,
}

/// What a request fails with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The connection was reset: transient, nobody knows whether the request arrived.
    Reset,
    /// hyper-util could not connect: provably unsent.
    Unsent,
    /// An error that nobody knows.
    Strange,
}

/// Answers at once with this status.
pub fn status(status: u16) -> Step {
    let status = StatusCode::from_u16(status).unwrap();
    Step {
        after: Duration::ZERO,
        end: Ending::Answer { status, headers: HeaderMap::new(), body: ScriptBody::text("") },
    }
}

/// Fails at once.
pub fn fail(failure: Failure) -> Step {
    Step { after: Duration::ZERO, end: Ending::Fail(failure) }
}

/// Never answers.
pub fn hang() -> Step {
    Step { after: Duration::ZERO, end: Ending::Hang }
}

impl Step {
    pub fn after(mut self, time: Duration) -> Self {
        self.after = time;
        self
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ending::Answer { headers, .. } = &mut self.end {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        self
    }

    pub fn retry_after(self, value: &str) -> Self {
        self.header("retry-after", value)
    }

    pub fn body(mut self, content: ScriptBody) -> Self {
        if let Ending::Answer { body, .. } = &mut self.end {
            *body = content;
        }
        self
    }
}

impl Failure {
    pub async fn error(self) -> BoxError {
        match self {
            Failure::Reset => io::Error::new(io::ErrorKind::ConnectionReset, "reset by the script").into(),
            Failure::Unsent => unsent().await,
            Failure::Strange => "something strange".into(),
        }
    }
}

/// The error of hyper-util's own client when nobody listens: nothing else proves that a request was not sent.
async fn unsent() -> BoxError {
    type Nothing = hyper_util::rt::TokioIo<tokio::net::TcpStream>;
    let refused = tower::service_fn(|_: Uri| {
        let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "refused by the script");
        std::future::ready(Err::<Nothing, _>(refused))
    });
    let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build(refused);
    let request = Request::get("http://nobody.example/").body(Full::<Bytes>::default()).unwrap();
    client.request(request).await.unwrap_err().into()
}
