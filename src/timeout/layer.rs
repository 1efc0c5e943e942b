//! The layer.

use std::{marker::PhantomData, time::Duration};

use tower_layer::Layer;

use super::Timeout;

/// Bounds a call in time: `head` up to the response head, `total` up to the end of the body, `body_idle` between two
/// frames of the body.
///
/// For paths without retries, and for what a retry layer cannot own: the body of the answer it hands on, and an
/// outer deadline. At least one limit has to be given: a `TimeoutLayer` without one is not a layer.
///
/// ```
/// use redial::TimeoutLayer;
/// use std::time::Duration;
///
/// let layer = TimeoutLayer::new()
///     .head(Duration::from_secs(5))
///     .total(Duration::from_secs(60))
///     .body_idle(Duration::from_secs(10));
/// ```
///
/// ```compile_fail,E0277
/// # let inner = tower::service_fn(|_: http::Request<()>| async { Ok::<_, std::io::Error>(http::Response::new(String::new())) });
/// let stack = tower::ServiceBuilder::new().layer(redial::TimeoutLayer::new()).service(inner); // limits nothing
/// ```
///
/// # The right order
///
/// Outside the [`RetryLayer`](crate::RetryLayer): it then bounds the whole call, attempts and waits included, and the
/// body that the retry layer hands on. The retry layer learns the instant through the [`Deadline`](crate::Deadline)
/// extension, and stops early instead of being cut off.
///
/// # The wrong order
///
/// Inside the retry layer, `head` would bound one attempt: that is the policy's own `attempt` timeout already. `total`
/// and `body_idle` inside still cut the body, but a body that fails there was handed to the caller already and is not
/// repeated.
#[derive(Clone, Debug)]
pub struct TimeoutLayer<Limits = SomeLimit> {
    limits: Limited,
    #[cfg(feature = "contract")]
    contract: Option<crate::contract::Contract>,
    state: PhantomData<fn() -> Limits>,
}

/// Marks a [`TimeoutLayer`] that has no limit yet, and so is not a layer.
#[derive(Clone, Copy, Debug)]
pub enum NoLimit {}

/// Marks a [`TimeoutLayer`] with at least one limit.
#[derive(Clone, Copy, Debug)]
pub enum SomeLimit {}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limited {
    pub(super) head: Option<Duration>,
    pub(super) total: Option<Duration>,
    pub(super) body_idle: Option<Duration>,
}

impl TimeoutLayer<NoLimit> {
    /// Begins a layer; name at least one limit.
    pub const fn new() -> Self {
        TimeoutLayer {
            limits: Limited { head: None, total: None, body_idle: None },
            #[cfg(feature = "contract")]
            contract: None,
            state: PhantomData,
        }
    }
}

#[cfg(feature = "contract")]
impl TimeoutLayer {
    /// By a contract: for each request, its operation's `timeouts.total` up to the response head, and its
    /// `timeouts.body_idle` between two frames of the body, where that is said. For paths without a retry layer, and
    /// above one for the bodies; a limit that is named beside it holds for every request instead of the contract's.
    ///
    /// ```
    /// # fn stack(contract: redial::contract::Contract) {
    /// use redial::{RetryLayer, TimeoutLayer};
    ///
    /// let layers = tower::ServiceBuilder::new()
    ///     .layer(TimeoutLayer::of(&contract))
    ///     .layer(RetryLayer::new(contract));
    /// # }
    /// ```
    pub fn of(contract: &crate::contract::Contract) -> Self {
        let none = TimeoutLayer::new();
        TimeoutLayer { limits: none.limits, contract: Some(contract.clone()), state: PhantomData }
    }
}

impl Default for TimeoutLayer<NoLimit> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Limits> TimeoutLayer<Limits> {
    fn with(self, limits: Limited) -> TimeoutLayer {
        TimeoutLayer {
            limits,
            #[cfg(feature = "contract")]
            contract: self.contract,
            state: PhantomData,
        }
    }

    /// From the call to its response head, attempts and waits of a retry layer inside included. Default: unlimited.
    /// With zero, nothing is sent.
    pub fn head(self, head: Duration) -> TimeoutLayer {
        let limits = Limited { head: Some(head), ..self.limits };
        self.with(limits)
    }

    /// From the call to the end of the response body, on one clock, the reader's own time included. Default: unlimited.
    /// With zero, nothing is sent.
    pub fn total(self, total: Duration) -> TimeoutLayer {
        let limits = Limited { total: Some(total), ..self.limits };
        self.with(limits)
    }

    /// The longest silence between two frames of the body, while the reader is waiting for one: a slow reader is not
    /// punished. Default: unlimited.
    pub fn body_idle(self, body_idle: Duration) -> TimeoutLayer {
        let limits = Limited { body_idle: Some(body_idle), ..self.limits };
        self.with(limits)
    }
}

impl<S> Layer<S> for TimeoutLayer {
    type Service = Timeout<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Timeout::new(
            inner,
            self.limits,
            #[cfg(feature = "contract")]
            self.contract.clone(),
        )
    }
}
