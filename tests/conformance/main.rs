//! Tables of other projects' expectations, every row run.
//!
//! Sources contradict each other, so some rows cannot hold: they are listed as deviations, each with
//! the number of the decision or rule, and with what we do instead, which is asserted too.

mod backoff;
mod budgets;
mod engine;
mod envoy;
mod gcs;
mod http_date;
mod retry_after;
mod status_method;
mod table;
