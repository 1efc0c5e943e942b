//! What was logged, by provider.

use std::{
    fmt,
    sync::{Mutex, Once},
};

use tracing::{Event, Level, Subscriber, field::Field};
use tracing_subscriber::{
    layer::{Context, Layer, SubscriberExt},
    registry::Registry,
};

static SEEN: Mutex<Vec<(String, Level, Option<String>)>> = Mutex::new(Vec::new());

/// Starts to capture. One subscriber for the whole process: those of single threads miss events of call sites that
/// another thread met first.
pub fn capture() {
    static START: Once = Once::new();
    START.call_once(|| {
        tracing::subscriber::set_global_default(Registry::default().with(Capture)).expect("the only subscriber");
    });
}

/// How many events of this level this provider has, and the `stop` of each.
pub fn of(provider: &str, level: Level) -> Vec<Option<String>> {
    let seen = SEEN.lock().expect("no panic while locked");
    seen.iter().filter(|event| event.0 == provider && event.1 == level).map(|event| event.2.clone()).collect()
}

struct Capture;

impl<S: Subscriber> Layer<S> for Capture {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "redial" {
            let mut fields = Fields::default();
            event.record(&mut fields);
            let event = (fields.provider.unwrap_or_default(), *event.metadata().level(), fields.stop);
            SEEN.lock().expect("no panic while locked").push(event);
        }
    }
}

#[derive(Default)]
struct Fields {
    provider: Option<String>,
    stop: Option<String>,
}

impl tracing::field::Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "provider" => self.provider = Some(value.to_owned()),
            "stop" => self.stop = Some(value.to_owned()),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
