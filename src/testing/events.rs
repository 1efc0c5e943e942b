//! What was said under the target `redial`.

use std::{
    collections::BTreeMap,
    fmt,
    marker::PhantomData,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tracing::{
    Dispatch, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::{DefaultGuard, NoSubscriber},
};

const TARGET: &str = "redial";

/// Captures the events of this crate, and of nobody else, on this thread, for as long as it lives. On this thread: use
/// it in tests on the current-thread runtime, which is `#[tokio::test]`'s default.
///
/// While it lives it stands in for the thread's own subscriber.
///
/// ```
/// # use redial::testing::{self, Events, Reply};
/// # use redial::{RetryLayer, StandardPolicy, Timeouts, Transient};
/// # use std::time::Duration;
/// # use tower::{Layer, ServiceExt};
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let timeouts = Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(30) };
/// # let policy = StandardPolicy::new("orders", timeouts, Transient::usual())?;
/// # let client = RetryLayer::new(policy).layer(testing::service([Reply::reset()]));
/// # let request = http::Request::get("/orders").body(http_body_util::Empty::<bytes::Bytes>::new())?;
/// let events = Events::capture();
/// client.oneshot(request).await.unwrap_err();
///
/// assert_eq!(events.one_error().get("stop"), "attempts");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "events are captured for as long as this lives"]
pub struct Events {
    said: Arc<Mutex<Vec<Event>>>,
    _guard: DefaultGuard,
    /// It belongs to its thread.
    _here: PhantomData<*const ()>,
}

/// One event, as it was said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Its level.
    pub level: Level,
    /// Its words.
    pub message: String,
    /// Its other fields, as text.
    pub fields: BTreeMap<String, String>,
}

impl Event {
    /// A field; empty where there is none.
    pub fn get(&self, field: &str) -> &str {
        self.fields.get(field).map_or("", String::as_str)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.level, self.message)?;
        self.fields.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

impl Events {
    /// Begins.
    pub fn capture() -> Self {
        // With one subscriber alone, `tracing` asks that of whichever thread meets an event first, and remembers the
        // answer for all threads. So there is always a second one, which nobody uses.
        static ANOTHER: OnceLock<Dispatch> = OnceLock::new();
        ANOTHER.get_or_init(|| Dispatch::new(NoSubscriber::new()));
        let said = Arc::new(Mutex::new(Vec::new()));
        let listener = Listener { said: Arc::clone(&said), spans: AtomicU64::new(1) };
        let _guard = tracing::subscriber::set_default(listener);
        Events { said, _guard, _here: PhantomData }
    }

    /// All of them so far, in their order.
    pub fn all(&self) -> Vec<Event> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Those of one level.
    pub fn at(&self, level: Level) -> Vec<Event> {
        self.all().into_iter().filter(|event| event.level == level).collect()
    }

    /// Asserts that there is exactly one ERROR, and returns it: a call that fails finally says so once.
    ///
    /// # Panics
    ///
    /// With all that was said, where there is none, or more than one.
    #[track_caller]
    pub fn one_error(&self) -> Event {
        let mut errors = self.at(Level::ERROR);
        match (errors.pop(), errors.is_empty()) {
            (Some(error), true) => error,
            _ => panic!("expected one ERROR, but this was said:{}", self.list()),
        }
    }

    /// Asserts that there is no ERROR.
    ///
    /// # Panics
    ///
    /// With all that was said, where there is one.
    #[track_caller]
    pub fn no_error(&self) {
        assert!(self.at(Level::ERROR).is_empty(), "expected no ERROR, but this was said:{}", self.list());
    }

    fn list(&self) -> String {
        match self.all() {
            events if events.is_empty() => " nothing".to_owned(),
            events => events.iter().map(|event| format!("\n  {event}")).collect(),
        }
    }
}

struct Listener {
    said: Arc<Mutex<Vec<Event>>>,
    spans: AtomicU64,
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut said = Event { level: *event.metadata().level(), message: String::new(), fields: BTreeMap::new() };
        event.record(&mut said);
        self.said.lock().unwrap_or_else(PoisonError::into_inner).push(said);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

impl Visit for Event {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = value.to_owned(),
            name => drop(self.fields.insert(name.to_owned(), value.to_owned())),
        }
    }
}
