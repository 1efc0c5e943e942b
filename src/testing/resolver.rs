//! Names that are not resolved.

use std::{
    fmt,
    future::{Ready, ready},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use hyper_util::client::legacy::connect::dns::Name;

/// A resolver for hyper-util's [`HttpConnector`] that fails always, or at first. The client sees `dns`, unsent. Clones
/// share the count of lookups.
///
/// ```
/// use hyper_util::client::legacy::connect::HttpConnector;
/// use redial::testing::{Reply, Resolver, Server};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = Server::http1([Reply::ok("found")]);
/// let resolver = Resolver::to(server.addr()).failing_first(2);
/// let connector = HttpConnector::new_with_resolver(resolver.clone());
/// # }
/// ```
///
/// [`HttpConnector`]: hyper_util::client::legacy::connect::HttpConnector
#[derive(Clone, Debug)]
#[must_use = "a resolver does nothing until a connector has it"]
pub struct Resolver {
    addr: Option<SocketAddr>,
    fails: usize,
    lookups: Arc<AtomicUsize>,
}

impl Resolver {
    /// Fails always.
    pub fn failing() -> Self {
        Resolver { addr: None, fails: usize::MAX, lookups: Arc::default() }
    }

    /// Resolves every name to this address. Its port counts where the URL names none.
    pub fn to(addr: SocketAddr) -> Self {
        Resolver { addr: Some(addr), fails: 0, lookups: Arc::default() }
    }

    /// Fails this many lookups first.
    pub fn failing_first(mut self, lookups: usize) -> Self {
        self.fails = lookups;
        self
    }

    /// How many names it was asked for.
    pub fn lookups(&self) -> usize {
        self.lookups.load(Ordering::SeqCst)
    }
}

impl tower_service::Service<Name> for Resolver {
    type Response = std::option::IntoIter<SocketAddr>;
    type Error = NotResolved;
    type Future = Ready<Result<Self::Response, NotResolved>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NotResolved>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        let failed = self.lookups.fetch_add(1, Ordering::SeqCst) < self.fails;
        ready(if failed { Err(NotResolved) } else { Ok(self.addr.into_iter()) })
    }
}

/// A lookup failed, as the script says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotResolved;

impl fmt::Display for NotResolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name was not resolved, says the script")
    }
}

impl std::error::Error for NotResolved {}
