//! A subscriber that keeps what was said: every event and every span, with all its fields as text.
#![allow(dead_code)] // each test file uses its part

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, Once},
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::DefaultGuard,
};
use tracing_subscriber::{Layer, Registry, layer::Context, layer::SubscriberExt};

/// One event (or span), as it was said.
#[derive(Clone, Debug)]
pub struct Said {
    pub level: Level,
    pub target: String,
    pub fields: BTreeMap<String, String>,
}

impl Said {
    pub fn get(&self, field: &str) -> &str {
        self.fields.get(field).map_or("", String::as_str)
    }

    pub fn names(&self) -> Vec<&str> {
        self.fields.keys().map(String::as_str).collect()
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:5} {}: {}", self.level, self.target, self.get("message"))?;
        let fields = self.fields.iter().filter(|(name, _)| *name != "message");
        fields.into_iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

/// What was said on this thread while the guard lives.
#[derive(Clone, Default)]
pub struct Capture(Arc<Mutex<Vec<Said>>>);

impl Capture {
    pub fn start() -> (Self, DefaultGuard) {
        // Beside one subscriber alone, `tracing` asks the default of whichever thread meets an event first, and
        // remembers its answer for all. Other tests' threads have none of their own: this is theirs.
        static FOR_OTHERS: Once = Once::new();
        FOR_OTHERS.call_once(|| drop(tracing::subscriber::set_global_default(Registry::default())));
        let capture = Self::default();
        let guard = tracing::subscriber::set_default(Registry::default().with(capture.clone()));
        (capture, guard)
    }

    pub fn all(&self) -> Vec<Said> {
        self.0.lock().unwrap().clone()
    }

    /// Of this crate.
    pub fn ours(&self) -> Vec<Said> {
        self.all().into_iter().filter(|said| said.target == "redial").collect()
    }

    pub fn at(&self, level: Level) -> Vec<Said> {
        self.ours().into_iter().filter(|said| said.level == level).collect()
    }

    pub fn messages(&self) -> Vec<(Level, String)> {
        self.ours().iter().map(|said| (said.level, said.get("message").to_owned())).collect()
    }
}

struct Fields<'a>(&'a mut BTreeMap<String, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl<S: Subscriber> Layer<S> for Capture {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        let (level, target) = (*event.metadata().level(), event.metadata().target().to_owned());
        self.0.lock().unwrap().push(Said { level, target, fields });
    }

    fn on_new_span(&self, span: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let mut fields = BTreeMap::from([("span".to_owned(), span.metadata().name().to_owned())]);
        span.record(&mut Fields(&mut fields));
        let (level, target) = (*span.metadata().level(), span.metadata().target().to_owned());
        self.0.lock().unwrap().push(Said { level, target, fields });
    }

    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut fields = BTreeMap::new();
        values.record(&mut Fields(&mut fields));
        let (level, target) = (Level::TRACE, "recorded later".to_owned());
        self.0.lock().unwrap().push(Said { level, target, fields });
    }
}
