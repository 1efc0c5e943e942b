//! The figures: a table of 80 columns, words, or JSON.

use std::fmt::{self, Write};

use serde_json::{Value, json};

use crate::{
    day::PHASES,
    run::{Client, Day, PhaseFigures},
};

impl PhaseFigures {
    pub fn load(&self) -> f64 {
        self.sent as f64 / self.calls.max(1) as f64
    }

    pub fn success(&self) -> f64 {
        100.0 * self.ok as f64 / self.calls.max(1) as f64
    }

    /// The value below which this share of the calls lies.
    pub fn millis_at(&self, share: f64) -> f64 {
        let last = self.millis.len().saturating_sub(1);
        self.millis.get((last as f64 * share).round() as usize).copied().unwrap_or_default()
    }
}

impl Client {
    fn total(&self) -> PhaseFigures {
        self.phases.iter().fold(PhaseFigures::default(), |mut total, phase| {
            total.calls += phase.calls;
            total.sent += phase.sent;
            total.ok += phase.ok;
            total
        })
    }
}

/// For people: a terminal of 80 columns is enough.
pub fn text(day: &Day) -> Result<String, fmt::Error> {
    let mut text = String::new();
    let rule = "-".repeat(80);
    writeln!(
        text,
        "{:<9} {:<7} {:>6} {:>6} {:>5} {:>6} {:>6} {:>7}  ended badly by",
        "phase", "client", "calls", "sent", "load", "ok %", "p50 ms", "p99 ms"
    )?;
    writeln!(text, "{rule}")?;
    for (index, phase) in PHASES.iter().enumerate() {
        for client in &day.clients {
            let figures = &client.phases[index];
            let name = if client.name == day.clients[0].name { phase.name() } else { "" };
            let mut stops = by_count(figures).into_iter().map(|(stop, count)| format!("  {stop} {count}"));
            writeln!(
                text,
                "{name:<9} {:<7} {:>6} {:>6} {:>5.2} {:>6.1} {:>6.0} {:>7.0}{}",
                client.name,
                figures.calls,
                figures.sent,
                figures.load(),
                figures.success(),
                figures.millis_at(0.5),
                figures.millis_at(0.99),
                stops.next().unwrap_or_default(),
            )?;
            // What did not fit is on lines of its own: nothing is hidden.
            for stop in stops {
                writeln!(text, "{:<60}{stop}", "")?;
            }
        }
    }
    writeln!(text, "{rule}")?;
    in_words(day, &mut text)?;
    Ok(text)
}

fn by_count(figures: &PhaseFigures) -> Vec<(&'static str, u64)> {
    let mut stops: Vec<_> = figures.stops.iter().map(|(stop, count)| (*stop, *count)).collect();
    stops.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    stops
}

fn in_words(day: &Day, text: &mut String) -> fmt::Result {
    let outage = PHASES.len() - 2;
    for client in &day.clients {
        let total = client.total();
        let what = match client.name {
            "none" => "Without retries,",
            "naive" => "The naive loop",
            _ => "redial",
        };
        let sent = format!("{:.1} times the load in the outage", client.phases[outage].load());
        let writes = match client.duplicate_writes {
            0 => "repeated no write".to_owned(),
            1 => "repeated 1 write".to_owned(),
            writes => format!("repeated {writes} writes"),
        };
        let success = total.success();
        match client.name {
            "none" => writeln!(text, "{what} {success:.1} % of the calls of the day succeeded.")?,
            _ => writeln!(text, "{what} brought {success:.1} % home, sent {sent}\nand {writes}.")?,
        }
    }
    Ok(())
}

pub fn json(day: &Day) -> Value {
    let phase = |(figures, phase): (&PhaseFigures, &crate::day::Phase)| {
        json!({
            "name": phase.name(),
            "calls": figures.calls,
            "sent": figures.sent,
            "ok": figures.ok,
            "p50_ms": figures.millis_at(0.5),
            "p99_ms": figures.millis_at(0.99),
            "stops": figures.stops,
        })
    };
    let client = |client: &Client| {
        json!({
            "name": client.name,
            "duplicate_writes": client.duplicate_writes,
            "phases": client.phases.iter().zip(&PHASES).map(phase).collect::<Vec<_>>(),
        })
    };
    json!({ "clients": day.clients.iter().map(client).collect::<Vec<_>>() })
}
