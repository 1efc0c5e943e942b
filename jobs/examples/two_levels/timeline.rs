//! What happens, a line each, in the time of the story.

use std::{
    fmt::Debug,
    io::{self, IsTerminal, Write},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{Layer, layer::Context, registry::LookupSpan};

/// How much faster the story is told than it happens.
const FASTER: u32 = 12;

/// As long as so many seconds of the story.
pub const fn story(seconds: u64) -> Duration {
    Duration::from_millis(seconds * 1000 / FASTER as u64)
}

#[derive(Clone)]
pub struct Timeline(Arc<Inner>);

struct Inner {
    start: Instant,
    colours: bool,
}

impl Timeline {
    pub fn new(start: Instant) -> Self {
        let colours = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
        Self(Arc::new(Inner { start, colours }))
    }

    pub fn title(&self, title: &str) {
        println!("\n{}\n", self.styled("1", title));
    }

    /// Something happened at one of the levels.
    pub fn say(&self, level: &str, about: &str, what: &str) {
        let at = self.0.start.elapsed().as_secs_f64() * f64::from(FASTER);
        let colour = match level {
            "server" => "35",
            "http" => "2",
            "sweep" => "36",
            _ if what.starts_with("COMPLETED") => "32",
            _ if what.starts_with("FAILED") => "33",
            _ if what.starts_with("DEAD") => "31",
            _ => "0",
        };
        // A reader that has gone is no reason to stop.
        let _ = writeln!(io::stdout(), "{at:5.1} s  {level:<6}  {about:<12}  {}", self.styled(colour, what));
    }

    fn styled(&self, code: &str, text: &str) -> String {
        if self.0.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// The fields of an event or a span, as text.
#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| *field == name).map_or("", |(_, value)| value)
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }
}

/// Who a job is for, kept with its span.
struct About(String);

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Timeline {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id).filter(|span| span.name() == "job") {
            span.extensions_mut().insert(About(about(&fields)));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        match event.metadata().target() {
            "redial" => {
                let span = context.event_scope(event).into_iter().flatten().find(|span| span.name() == "job");
                let about = span.and_then(|span| span.extensions().get::<About>().map(|about| about.0.clone()));
                if let Some(what) = http(&fields) {
                    self.say("http", &about.unwrap_or_default(), &what);
                }
            }
            "redial_jobs" => {
                if let Some((level, what)) = job(&fields) {
                    self.say(level, &about(&fields), &what);
                }
            }
            _ => {}
        }
    }
}

fn about(fields: &Fields) -> String {
    format!("{} {}", fields.get("job_type"), fields.get("job_target")).trim().to_owned()
}

fn http(fields: &Fields) -> Option<String> {
    let attempt = fields.get("attempt");
    let what = match fields.get("message") {
        "attempt failed, will be repeated" => {
            format!("attempt {attempt}: {}, again in {} ms", fields.get("error.type"), fields.get("wait_ms"))
        }
        "failed" => format!("attempt {attempt}: {}, no more: {}", fields.get("error.type"), fields.get("stop")),
        "answered: look before repeating" => {
            format!("attempt {attempt}: {}, which may mean that it worked", fields.get("error.type"))
        }
        "succeeded after retry" => format!("attempt {attempt}: it works"),
        _ => return None,
    };
    Some(what)
}

fn job(fields: &Fields) -> Option<(&'static str, String)> {
    let what = match fields.get("message") {
        "a job is done" => "COMPLETED".to_owned(),
        "a job is done after recovery" => format!("COMPLETED, run {}", fields.get("attempt")),
        "a job's work was done already: an earlier attempt had worked" => "it was done already".to_owned(),
        "looked whether a job's work is done" => format!("looks whether it was done: {}", fields.get("found")),
        "a job FAILED: recovery will repair it" => {
            let unknown = if fields.get("outcome_unknown") == "true" { "; it may have been done" } else { "" };
            format!("FAILED {} ({}){unknown}", fields.get("failures"), fields.get("class"))
        }
        "a job is DEAD: a person must look" => format!("DEAD: {}", fields.get("error")),
        "jobs were recovered" => {
            let waiting = fields.get("waiting");
            return Some(("sweep", format!("{} to be tried again, {waiting} wait for it", fields.get("recovered"))));
        }
        "a batch of jobs was enqueued" => return Some(("batch", format!("{} jobs enqueued", fields.get("new")))),
        _ => return None,
    };
    Some(("job", what))
}
