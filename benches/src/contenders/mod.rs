//! Who is measured: the same request by the same rule (three attempts on 503, a timeout for each and one for all, a wait
//! between) through redial, through its peers, and through a loop written by hand.

mod calls;
mod ours;
mod peers;

use std::{
    fmt::Debug,
    future::Future,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tokio::runtime::{Builder, Runtime};
use tower::Service;

use crate::memory::{Memory, request};

pub use calls::calls;
pub use ours::layer;

/// The body of every request.
pub type Body = Full<Bytes>;

const ATTEMPT: Duration = Duration::from_secs(1);
const TOTAL: Duration = Duration::from_secs(10);
/// The first wait; the second is twice as long.
const WAIT: Duration = Duration::from_millis(2);

/// What the service beneath does.
#[derive(Clone, Copy, PartialEq)]
pub struct Case {
    /// How often an answer yields before it comes.
    pub yields: u32,
    /// How many answers are 503 before one is 200.
    pub fails: u32,
}

impl Case {
    /// The first attempt succeeds, at its first poll.
    pub const READY: Case = Case { yields: 0, fails: 0 };
    /// The first attempt succeeds, at its second poll: as a client of the network answers.
    pub const YIELDS: Case = Case { yields: 1, fails: 0 };
    /// The third attempt succeeds.
    pub const RETRIES: Case = Case { yields: 0, fails: 2 };
    /// Nothing ever succeeds.
    pub const OUTAGE: Case = Case { yields: 0, fails: u32::MAX - 1 };

    fn service(self) -> Memory {
        Memory::new(self.fails, self.yields)
    }

    /// Where its calls run. Waits are on a paused clock, so that they cost their bookkeeping and no time. Where nothing
    /// waits it is the system's clock, since one that can be paused costs more to read; but once a runtime of this process
    /// has paused its own, all of them do.
    pub fn runtime(self) -> Runtime {
        Builder::new_current_thread().enable_time().start_paused(self.fails > 0).build().expect("a runtime")
    }
}

/// One way to make calls. Its future borrows nothing, so that a thousand can be in flight.
pub trait Caller: Send + 'static {
    /// What an answer carries.
    type Answer: Send;
    /// What a call may end with instead.
    type Error: Debug + Send;

    /// A call.
    fn call(
        &mut self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<Response<Self::Answer>, Self::Error>> + Send + use<Self>;
}

/// A service is ready, then called.
pub struct Layered<S>(pub S);

impl<S, A> Caller for Layered<S>
where
    S: Service<Request<Body>, Response = Response<A>> + Send + 'static,
    S::Future: Send,
    S::Error: Debug + Send,
    A: Send,
{
    type Answer = A;
    type Error = S::Error;

    fn call(
        &mut self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<Response<A>, S::Error>> + Send + use<S, A> {
        let ready = self.0.poll_ready(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(ready, Poll::Ready(Ok(()))), "a service in memory is always ready");
        self.0.call(request)
    }
}

/// What is done with a contender, whichever it is.
pub trait Work {
    /// What is found out.
    type Found;

    /// Does it.
    fn with(self, caller: impl Caller) -> Self::Found;
}

/// The size of one call's future.
pub struct Size;

impl Work for Size {
    type Found = f64;

    fn with(self, mut caller: impl Caller) -> f64 {
        let runtime = Case::READY.runtime();
        let _inside = runtime.enter();
        size_of_val(&caller.call(request())) as f64
    }
}

/// The contenders.
#[derive(Clone, Copy, PartialEq)]
pub enum Who {
    /// The service alone. It answers well at once, so that what is over it holds the service's work in repeats too.
    Bare,
    /// `RetryLayer`: both timeouts, budget and guard on.
    Redial,
    /// tower's retry and timeout layers.
    Tower,
    /// tower-resilience's retry layer and time limiter.
    Resilience,
    /// A loop, as it is written everywhere.
    Hand,
    /// backon, with tokio's timeouts.
    Backon,
}

impl Who {
    /// All that make calls over the service, redial first.
    pub const OVER: [Who; 5] = [Who::Redial, Who::Tower, Who::Resilience, Who::Hand, Who::Backon];

    /// What each is called in tables, in the order of [`OVER`](Self::OVER).
    pub const NAMES: [&str; 5] = ["redial", "tower", "tower-resilience", "loop by hand", "backon"];

    /// Does some work with a new one.
    pub fn work<W: Work>(self, case: Case, work: W) -> W::Found {
        let service = case.service();
        match self {
            Who::Bare => work.with(Layered(Case { fails: 0, ..case }.service())),
            Who::Redial => work.with(Layered(tower::Layer::layer(&layer(case), service))),
            Who::Tower => work.with(Layered(peers::tower(service))),
            Who::Resilience => work.with(Layered(peers::resilience(service))),
            Who::Hand => work.with(peers::Hand(service)),
            Who::Backon => work.with(peers::Backon(service)),
        }
    }

    /// As a word for [`callgrind::instructions`](crate::callgrind::instructions).
    pub fn word(self) -> String {
        (self as usize).to_string()
    }

    /// Of such a word.
    pub fn of(word: &str) -> Who {
        let place: usize = word.parse().expect("a contender's number");
        [Who::Bare].into_iter().chain(Who::OVER).nth(place).expect("a contender")
    }
}
