//! A service in memory, and the request that figures are taken with.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use tower::{BoxError, Service};

/// A POST with 8 headers (4 owned values, 3 names that no table knows) and 256 bytes in memory.
pub fn request() -> Request<Full<Bytes>> {
    let owned = |text: String| HeaderValue::from_str(&text).expect("plain text");
    let custom = |name: &str| HeaderName::from_bytes(name.as_bytes()).expect("plain text");
    Request::post("http://127.0.0.1:8080/v1/things?x=1")
        .header(header::ACCEPT, HeaderValue::from_static("application/json"))
        .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .header(header::AUTHORIZATION, owned(format!("Bearer {}", "a".repeat(40))))
        .header(header::USER_AGENT, HeaderValue::from_static("client/1"))
        .header(custom("x-request-id"), owned(format!("{:032}", 7)))
        .header(custom("x-trace-one"), owned(format!("{:032}", 8)))
        .header(custom("x-tenant"), owned(format!("{:016}", 9)))
        .header(header::ACCEPT_LANGUAGE, HeaderValue::from_static("en"))
        .body(Full::new(Bytes::from_static(&[1; 256])))
        .expect("a request")
}

/// Answers 503 this often, then 200, and so on; each answer after yielding this often. Clones share the count.
#[derive(Clone)]
pub struct Memory {
    fails: u32,
    yields: u32,
    answered: Arc<AtomicU32>,
}

impl Memory {
    pub fn new(fails: u32, yields: u32) -> Self {
        Memory { fails, yields, answered: Arc::default() }
    }
}

pub struct Answer<R> {
    request: Option<R>,
    yields: u32,
    status: StatusCode,
}

impl<R: Unpin> Future for Answer<R> {
    type Output = Result<Response<Full<Bytes>>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.yields > 0 {
            self.yields -= 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        drop(self.request.take());
        let mut response = Response::new(Full::default());
        *response.status_mut() = self.status;
        Poll::Ready(Ok(response))
    }
}

impl<B: Unpin> Service<Request<B>> for Memory {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Answer<Request<B>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let turn = self.answered.fetch_add(1, Ordering::Relaxed) % (self.fails + 1);
        let status = if turn < self.fails { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
        Answer { request: Some(request), yields: self.yields, status }
    }
}
