//! The same rule as a policy of tower's own retry layer: 503 is repeated, with a wait between.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower::{BoxError, retry::Policy};

#[derive(Clone)]
pub struct Towers {
    pub left: u32,
    pub wait: Duration,
}

type Body = Full<Bytes>;

impl<RB> Policy<Request<Body>, Response<RB>, BoxError> for Towers {
    type Future = tokio::time::Sleep;

    fn retry(&mut self, _: &mut Request<Body>, result: &mut Result<Response<RB>, BoxError>) -> Option<Self::Future> {
        let failed = result.as_ref().is_ok_and(|response| response.status() == 503);
        self.left = self.left.checked_sub(1).filter(|_| failed)?;
        Some(tokio::time::sleep(self.wait))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        Some(request.clone())
    }
}
