//! What a policy is shown.

use std::error::Error as StdError;

use http::{Extensions, HeaderMap, Method, Request, StatusCode, Uri};

use super::GrpcCode;
use crate::fault::Fault;

/// A request's head, as a policy sees it before the first attempt.
#[derive(Clone, Copy)]
pub struct RequestHead<'a> {
    method: &'a Method,
    uri: &'a Uri,
    headers: &'a HeaderMap,
    extensions: &'a Extensions,
}

impl<'a> RequestHead<'a> {
    /// The head of this request. Useful in the tests of a policy.
    pub fn of<B>(request: &'a Request<B>) -> Self {
        RequestHead {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }

    /// The method.
    pub fn method(&self) -> &'a Method {
        self.method
    }

    /// The target. May hold secrets in its query and userinfo: do not log it.
    pub fn uri(&self) -> &'a Uri {
        self.uri
    }

    /// The headers. May hold credentials: do not log them.
    pub fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// What the caller put into the request's extensions.
    pub fn extensions(&self) -> &'a Extensions {
        self.extensions
    }

    /// `CONNECT`, or a request for an upgrade: never repeated. The engine sees it while it keeps a head.
    #[cfg(any(feature = "cli", feature = "idempotency-key", feature = "tower-retry"))]
    pub(crate) fn is_upgrade(&self) -> bool {
        self.method == Method::CONNECT || self.headers.contains_key(http::header::UPGRADE)
    }
}

impl std::fmt::Debug for RequestHead<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Neither target nor headers: both may hold secrets.
        f.debug_struct("RequestHead").field("method", self.method).finish_non_exhaustive()
    }
}

/// How one attempt ended: with a response head, or with an error.
pub struct Outcome<'a> {
    what: What<'a>,
    attempt: u32,
    earlier_unknown: bool,
    body: Option<&'a [u8]>,
    grpc: bool,
}

enum What<'a> {
    Answer(StatusCode, &'a HeaderMap),
    Failed(&'a (dyn StdError + 'static), Fault),
}

impl<'a> Outcome<'a> {
    /// An answer to the first attempt. Useful in the tests of a policy.
    pub fn answer(status: StatusCode, headers: &'a HeaderMap) -> Self {
        Outcome { what: What::Answer(status, headers), attempt: 1, earlier_unknown: false, body: None, grpc: false }
    }

    /// A first attempt that failed without an answer. Useful in the tests of a policy.
    pub fn failed(error: &'a (dyn StdError + 'static)) -> Self {
        Self::failed_as(error, Fault::read(error))
    }

    pub(crate) fn failed_as(error: &'a (dyn StdError + 'static), fault: Fault) -> Self {
        Outcome { what: What::Failed(error, fault), attempt: 1, earlier_unknown: false, body: None, grpc: false }
    }

    /// The same outcome of a later attempt. `earlier_unknown`: an earlier attempt of this call may have worked.
    pub fn of_attempt(mut self, attempt: u32, earlier_unknown: bool) -> Self {
        self.attempt = attempt;
        self.earlier_unknown = earlier_unknown;
        self
    }

    /// The same answer with the beginning of its body.
    pub fn with_body(mut self, body: &'a [u8]) -> Self {
        self.body = Some(body);
        self
    }

    /// The first [`PEEK`](super::PEEK) bytes of an error answer's body, where the verdict before this one was
    /// [`Verdict::look_into_body`](super::Verdict::look_into_body); empty where there is none. May hold secrets: do not log it.
    pub fn body(&self) -> Option<&'a [u8]> {
        self.body
    }

    /// The same outcome of a call of gRPC: its answer is judged by its code. Where the status came in trailers, the
    /// headers hold these too.
    pub fn over_grpc(mut self) -> Self {
        self.grpc = true;
        self
    }

    /// The answer's code, where this is a call of gRPC and the answer has one: by its `grpc-status`, or else by a status
    /// of HTTP other than 200. `None` where messages come first, and the code after them.
    pub fn grpc_code(&self) -> Option<GrpcCode> {
        self.said_code().or_else(|| if self.grpc { GrpcCode::of_http(self.status()?) } else { None })
    }

    /// What `grpc-status` says, where this is a call of gRPC.
    pub(crate) fn said_code(&self) -> Option<GrpcCode> {
        if self.grpc { GrpcCode::said(self.headers()?) } else { None }
    }

    pub(crate) fn is_of_grpc(&self) -> bool {
        self.grpc
    }

    /// The answer's status, where there is an answer.
    pub fn status(&self) -> Option<StatusCode> {
        match self.what {
            What::Answer(status, _) => Some(status),
            What::Failed(..) => None,
        }
    }

    /// The answer's headers, where there is an answer.
    pub fn headers(&self) -> Option<&'a HeaderMap> {
        match self.what {
            What::Answer(_, headers) => Some(headers),
            What::Failed(..) => None,
        }
    }

    /// The client's error, where there is no answer.
    pub fn error(&self) -> Option<&'a (dyn StdError + 'static)> {
        match self.what {
            What::Answer(..) => None,
            What::Failed(error, _) => Some(error),
        }
    }

    /// What went wrong on the wire, where there is no answer.
    pub fn fault(&self) -> Option<Fault> {
        match self.what {
            What::Answer(..) => None,
            What::Failed(_, fault) => Some(fault),
        }
    }

    /// Which attempt this was; the first is 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether an earlier attempt of this call may have taken effect: its answer was lost or does not say.
    pub fn earlier_unknown(&self) -> bool {
        self.earlier_unknown
    }
}

impl std::fmt::Debug for Outcome<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Outcome");
        match &self.what {
            What::Answer(status, _) => out.field("status", status),
            What::Failed(_, fault) => out.field("fault", &fault.kind()),
        };
        out.field("attempt", &self.attempt).finish_non_exhaustive()
    }
}
