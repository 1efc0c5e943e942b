//! The peers, each as its own pages show it, with the same rule. None has a budget here, which is to their advantage.

use std::future::Future;

use backon::{ExponentialBuilder, Retryable};
use futures_util::FutureExt;
use http::{Request, Response};
use tokio::time::{sleep, timeout};
use tower::{BoxError, Service, ServiceBuilder, retry::Retry, timeout::Timeout};
use tower_resilience_retry::{ExponentialBackoff, RetryLayer};
use tower_resilience_timelimiter::{TimeLimiterError, TimeLimiterLayer};

use super::{ATTEMPT, Body, Caller, TOTAL, WAIT};
use crate::{memory::Memory, towers::Towers};

const ATTEMPTS: u32 = 3;

pub(super) fn tower(service: Memory) -> Timeout<Retry<Towers, Timeout<Memory>>> {
    let policy = Towers { left: ATTEMPTS - 1, wait: WAIT };
    ServiceBuilder::new().timeout(TOTAL).retry(policy).timeout(ATTEMPT).service(service)
}

type Limited = TimeLimiterError<BoxError>;

pub(super) fn resilience(
    service: Memory,
) -> impl Service<Request<Body>, Response = Response<Body>, Error = TimeLimiterError<Limited>, Future: Send> + Send + 'static
{
    let retry = RetryLayer::<Request<Body>, Response<Body>, Limited>::builder()
        .max_attempts(ATTEMPTS as usize)
        .backoff(ExponentialBackoff::new(WAIT))
        .retry_on(|_| false)
        .retry_on_response(|response| response.status() == 503)
        .name("things")
        .build();
    let limit = |after| TimeLimiterLayer::builder().timeout_duration(after).name("things").build();
    ServiceBuilder::new().layer(limit(TOTAL)).layer(retry).layer(limit(ATTEMPT)).service(service)
}

/// The whole call's time. The two results become one without a second copy of the future, which an `async` block around
/// it would keep.
fn within_total(attempts: impl Future<Output = Answered> + Send) -> impl Future<Output = Answered> + Send {
    timeout(TOTAL, attempts).map(|ended| ended?)
}

type Answered = Result<Response<Body>, BoxError>;

pub(super) struct Hand(pub(super) Memory);

impl Caller for Hand {
    type Answer = Body;
    type Error = BoxError;

    fn call(&mut self, request: Request<Body>) -> impl Future<Output = Answered> + Send + use<> {
        // Cloned, as clients are to be. It is always ready.
        let mut service = self.0.clone();
        within_total(async move {
            let mut wait = WAIT;
            for _ in 1..ATTEMPTS {
                match timeout(ATTEMPT, service.call(request.clone())).await {
                    Ok(Ok(response)) if response.status() != 503 => return Ok(response),
                    _ => sleep(wait).await,
                }
                wait *= 2;
            }
            timeout(ATTEMPT, service.call(request)).await?
        })
    }
}

pub(super) struct Backon(pub(super) Memory);

/// backon repeats errors alone: an answer that is to be repeated has to be one.
enum Failure {
    Answer(Response<Body>),
    Error(BoxError),
}

impl Caller for Backon {
    type Answer = Body;
    type Error = BoxError;

    #[expect(clippy::result_large_err, reason = "a box would cost backon what it does not ask for")]
    fn call(&mut self, request: Request<Body>) -> impl Future<Output = Answered> + Send + use<> {
        let mut service = self.0.clone();
        let waits = ExponentialBuilder::new().with_min_delay(WAIT).with_max_times(ATTEMPTS as usize - 1);
        let attempt = move || {
            timeout(ATTEMPT, service.call(request.clone())).map(|ended| match ended {
                Ok(Ok(response)) if response.status() == 503 => Err(Failure::Answer(response)),
                Ok(other) => other.map_err(Failure::Error),
                Err(late) => Err(Failure::Error(late.into())),
            })
        };
        let repeated = attempt.retry(waits).when(|failure| matches!(failure, Failure::Answer(_)));
        within_total(repeated.map(|ended| match ended {
            Ok(response) | Err(Failure::Answer(response)) => Ok(response),
            Err(Failure::Error(error)) => Err(error),
        }))
    }
}
