//! A policy with short waits, a connector that counts, and the table that is printed.

use std::{
    error::Error,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Uri;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use redial::{Backoff, Budget, StandardPolicy, Timeouts, Transient};
use tower::util::MapRequest;

const TIMEOUTS: Timeouts = Timeouts { attempt: Duration::from_secs(5), total: Duration::from_secs(20) };

/// Three attempts in all, short waits, and no budget, which would hide what multiplies.
pub fn policy() -> StandardPolicy {
    with_budget(Budget::unlimited("what multiplies is to be seen"))
}

pub fn with_budget(budget: Budget) -> StandardPolicy {
    let [floor, initial, max] = [2, 8, 20].map(Duration::from_millis);
    let backoff = Backoff::exponential(initial).floor(floor).max(max);
    StandardPolicy::builder("scripted", TIMEOUTS, Transient::usual()).backoff(backoff).budget(budget).build().unwrap()
}

/// Connections that were tried.
#[derive(Clone, Debug, Default)]
pub struct Tried(Arc<AtomicUsize>);

impl Tried {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub fn connector(&self) -> impl Connect + Clone + Send + Sync + 'static {
        let tried = self.0.clone();
        MapRequest::new(HttpConnector::new(), move |uri: Uri| {
            tried.fetch_add(1, Ordering::Relaxed);
            uri
        })
    }
}

/// The error of ours that a client's own error holds.
#[track_caller]
pub fn ours<'a>(error: &'a (dyn Error + 'static)) -> &'a redial::Error {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return found;
        }
        next = error.source();
    }
    panic!("no error of ours in {error:?}");
}

/// How often a request is sent, where it fails each time.
pub struct Counts<const N: usize> {
    title: &'static str,
    columns: [&'static str; N],
    rows: Vec<(&'static str, [usize; N])>,
}

impl<const N: usize> Counts<N> {
    pub fn new(title: &'static str, columns: [&'static str; N]) -> Self {
        Counts { title, columns, rows: Vec::new() }
    }

    pub fn row(&mut self, name: &'static str, counts: [usize; N]) {
        self.rows.push((name, counts));
    }

    /// Prints them, and asserts that they are these, and that the page says so.
    #[track_caller]
    pub fn are(&self, expected: &[[usize; N]]) {
        println!("{self}");
        let page = include_str!("../../../docs/sdks.md");
        for (name, counts) in &self.rows {
            let counts: String = counts.iter().map(|count| format!(" {count} |")).collect();
            let row = format!("| {name} |{counts}");
            assert!(page.contains(&row), "docs/sdks.md does not hold the row: {row}");
        }
        let counts: Vec<_> = self.rows.iter().map(|(_, counts)| *counts).collect();
        assert_eq!(counts, expected, "{self}");
    }
}

impl<const N: usize> fmt::Display for Counts<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{:42}", self.title)?;
        self.columns.iter().try_for_each(|column| write!(f, "{column:>15}"))?;
        for (name, counts) in &self.rows {
            write!(f, "\n  {name:40}")?;
            counts.iter().try_for_each(|count| write!(f, "{count:>15}"))?;
        }
        Ok(())
    }
}
