//! A service that does what a list of steps says, and remembers what it was asked.
//!
//! Clones share the list. Each request takes the next step; a request beyond the last one panics, and so does a call
//! without readiness before it: each instance knows whether it was made ready.
#![allow(dead_code, unused_imports)] // each test file uses its part

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use redial::BoxError;
use tokio::time::{Instant, Sleep, sleep};
use tower::Service;

#[path = "script_body.rs"]
mod body;
#[path = "script_step.rs"]
mod step;

use body::Held;
pub use body::ScriptBody;
use step::Ending;
pub use step::{Failure, Step, fail, hang, status};

/// How the service becomes ready.
#[derive(Clone, Copy, Debug)]
pub enum Readiness {
    Now,
    After(Duration),
    Never,
    Fails,
}

/// One request, as the service saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Instant,
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub attempt: Option<u32>,
    /// When its call ended or was dropped, and whether it ended by itself.
    pub over: Option<Instant>,
    pub finished: bool,
}

#[derive(Default)]
struct Shared {
    steps: VecDeque<Step>,
    readiness: VecDeque<Readiness>,
    seen: Vec<Seen>,
    /// When an instance was first asked whether it is ready, since it was last called.
    asked: Vec<Instant>,
}

pub struct Script {
    shared: Arc<Mutex<Shared>>,
    bodies: Arc<AtomicUsize>,
    in_flight: Arc<AtomicUsize>,
    most_in_flight: Arc<AtomicUsize>,
    readiness: Own,
}

/// What one instance has of readiness; a clone has none.
enum Own {
    None,
    Coming(Pin<Box<Sleep>>),
    Never,
    Ready,
}

impl Clone for Script {
    fn clone(&self) -> Self {
        Script {
            shared: Arc::clone(&self.shared),
            bodies: Arc::clone(&self.bodies),
            in_flight: Arc::clone(&self.in_flight),
            most_in_flight: Arc::clone(&self.most_in_flight),
            readiness: Own::None,
        }
    }
}

impl Script {
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let shared = Shared { steps: steps.into_iter().collect(), ..Shared::default() };
        Script {
            shared: Arc::new(Mutex::new(shared)),
            bodies: Arc::default(),
            in_flight: Arc::default(),
            most_in_flight: Arc::default(),
            readiness: Own::None,
        }
    }

    /// The same answer to every request of a test that sends many.
    pub fn always(step: Step) -> Self {
        Self::new(std::iter::repeat_n(step, 4096))
    }

    /// How the next readinesses come; after these, at once.
    pub fn readiness(self, readiness: impl IntoIterator<Item = Readiness>) -> Self {
        self.lock().readiness.extend(readiness);
        self
    }

    pub fn push(&self, steps: impl IntoIterator<Item = Step>) {
        self.lock().steps.extend(steps);
    }

    /// Forgets the steps that were not taken.
    pub fn clear(&self) {
        self.lock().steps.clear();
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.lock().seen.clone()
    }

    pub fn count(&self) -> usize {
        self.lock().seen.len()
    }

    /// When each request came, counted from `start`, in milliseconds.
    pub fn millis(&self, start: Instant) -> Vec<u128> {
        self.lock().seen.iter().map(|seen| (seen.at - start).as_millis()).collect()
    }

    /// When readiness was first asked for, for each call, counted from `start`, in milliseconds.
    pub fn asked(&self, start: Instant) -> Vec<u128> {
        self.lock().asked.iter().map(|at| (*at - start).as_millis()).collect()
    }

    /// Response bodies that somebody still holds.
    pub fn bodies_held(&self) -> usize {
        self.bodies.load(Ordering::SeqCst)
    }

    /// Calls that are neither over nor dropped.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }

    pub fn most_in_flight(&self) -> usize {
        self.most_in_flight.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap()
    }
}

/// One call on its way.
struct Call {
    shared: Arc<Mutex<Shared>>,
    number: usize,
    finished: bool,
    _held: Held,
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(seen) = self.shared.lock().unwrap().seen.get_mut(self.number - 1) {
            (seen.over, seen.finished) = (Some(Instant::now()), self.finished);
        }
    }
}

impl<B> Service<Request<B>> for Script {
    type Response = Response<ScriptBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if matches!(self.readiness, Own::None) {
            let mut shared = self.shared.lock().unwrap();
            shared.asked.push(Instant::now());
            self.readiness = match shared.readiness.pop_front().unwrap_or(Readiness::Now) {
                Readiness::Now => Own::Ready,
                Readiness::After(time) => Own::Coming(Box::pin(sleep(time))),
                Readiness::Never => Own::Never,
                Readiness::Fails => return Poll::Ready(Err(NotReady.into())),
            };
        }
        match &mut self.readiness {
            Own::Coming(time) => {
                ready!(time.as_mut().poll(cx));
                self.readiness = Own::Ready;
                Poll::Ready(Ok(()))
            }
            Own::Ready => Poll::Ready(Ok(())),
            Own::Never | Own::None => Poll::Pending,
        }
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        assert!(matches!(self.readiness, Own::Ready), "called without readiness");
        self.readiness = Own::None;
        let mut shared = self.lock();
        shared.seen.push(Seen {
            at: Instant::now(),
            method: request.method().clone(),
            uri: request.uri().clone(),
            headers: request.headers().clone(),
            attempt: redial::attempt_number(request.extensions()),
            over: None,
            finished: false,
        });
        let number = shared.seen.len();
        let step = shared.steps.pop_front().unwrap_or_else(|| panic!("request {number} is one too many"));
        drop(shared);
        let call =
            Call { shared: Arc::clone(&self.shared), number, _held: Held::one(&self.in_flight), finished: false };
        self.most_in_flight.fetch_max(self.in_flight(), Ordering::SeqCst);
        let bodies = Arc::clone(&self.bodies);
        Box::pin(async move {
            let mut call = call; // the whole of it, dropped with this future
            if !step.after.is_zero() {
                sleep(step.after).await;
            }
            let result = match step.end {
                Ending::Hang => std::future::pending().await,
                Ending::Fail(failure) => Err(failure.error().await),
                Ending::Answer { status, headers, mut body } => {
                    body.held = Some(Arc::new(Held::one(&bodies)));
                    let mut response = Response::new(body);
                    *response.status_mut() = status;
                    *response.headers_mut() = headers;
                    Ok(response)
                }
            };
            call.finished = true;
            result
        })
    }
}

/// Readiness failed by the script.
#[derive(Debug, PartialEq, Eq)]
pub struct NotReady;

impl std::fmt::Display for NotReady {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not ready, says the script")
    }
}

impl std::error::Error for NotReady {}

/// A request without a body.
pub fn request(method: Method) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri("http://api.example/orders").body(Full::default()).unwrap()
}

/// The body of a response, as text.
pub async fn text<B: Body<Error: std::fmt::Debug>>(response: Response<B>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
