//! How far a benchmark is: one line on a terminal, nothing elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The line. It is gone when dropped, or while a table is printed.
pub struct Progress(ProgressBar);

impl Progress {
    /// A benchmark of this name, with as many steps.
    pub fn new(name: &'static str, steps: usize) -> Self {
        let template = format!("{name}: {{pos}}/{{len}} after {{elapsed}}, {{msg}}");
        let bar = ProgressBar::new(steps as u64);
        bar.set_style(ProgressStyle::with_template(&template).expect("a template"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress(bar)
    }

    /// The next step begins.
    pub fn step(&self, what: &str) {
        self.0.set_message(what.to_string());
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
