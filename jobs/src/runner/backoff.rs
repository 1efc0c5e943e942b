//! How a runner waits while its database is away, or broken.

use std::{future::Future, time::Duration};

use super::panics::caught;
use crate::{Error, recovery::random_up_to};

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);

/// Waits that grow, with jitter, up to five seconds.
pub(super) struct Backoff {
    doing: &'static str,
    failures: u32,
}

impl Backoff {
    /// While this is tried, such as `claim`.
    pub(super) fn of(doing: &'static str) -> Self {
        Self { doing, failures: 0 }
    }

    /// It failed: says so and waits.
    pub(super) async fn wait(&mut self, error: &Error) {
        self.failures = self.failures.saturating_add(1);
        crate::observe::store_failed(self.doing, self.failures, error);
        let wait = FIRST.saturating_mul(2_u32.saturating_pow(self.failures - 1)).min(LONGEST);
        tokio::time::sleep(wait / 2 + random_up_to(wait / 2)).await;
    }

    /// It worked.
    pub(super) fn reset(&mut self) {
        if self.failures > 0 {
            crate::observe::store_is_back(self.doing, self.failures);
        }
        self.failures = 0;
    }
}

/// Asks until the store answers. For what may be asked again. A store that panics has not answered.
pub(super) async fn persist<T, F>(doing: &'static str, mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, Error>>,
{
    let mut backoff = Backoff::of(doing);
    loop {
        match caught(doing, async { ask().await }).await.flatten() {
            Ok(answer) => {
                backoff.reset();
                return answer;
            }
            Err(error) => backoff.wait(&error).await,
        }
    }
}

/// Does this for as long as the runner lives: begun again where it panics, of the store's code or the caller's.
pub(super) async fn again<F: Future<Output = ()>>(doing: &'static str, mut begin: impl FnMut() -> F) {
    let mut backoff = Backoff::of(doing);
    while let Err(panic) = caught(doing, async { begin().await }).await {
        backoff.wait(&panic).await;
    }
}
