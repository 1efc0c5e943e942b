//! The small layers beside retry: a key, a body read within its attempt, a download that goes on, and what a failure
//! comes to.
//!
//! `cargo test --all-features --test layers -- --nocapture printed` prints what a server sees of a POST with a generated
//! key, and a download through a killed server.

#[path = "../common/mod.rs"]
mod common;
#[path = "../support/mod.rs"]
mod support;

mod buffer;
mod collected;
mod file;
mod keys;
mod recovering;
mod resuming;
mod resuming_refused;
mod resuming_timed;
mod stack;
mod wrong_orders;

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use redial::{Backoff, Budget, StandardPolicy, Timeouts, Transient, policy::StandardPolicyBuilder};

/// For a paused clock: an attempt may take 5 s, the waits are of 100 ms.
fn paused() -> StandardPolicyBuilder {
    let timeouts = Timeouts { attempt: Duration::from_secs(5), total: Duration::from_secs(60) };
    StandardPolicy::builder("shop", timeouts, Transient::usual())
        .backoff(wait())
        .budget(Budget::unlimited("tests bound themselves"))
}

fn wait() -> Backoff {
    Backoff::fixed(Duration::from_millis(100), "tests are exact")
}

fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(path).body(Full::default()).unwrap()
}

fn post(path: &str) -> Request<Full<Bytes>> {
    Request::post(path).body(Full::from("ten bytes!")).unwrap()
}

/// The whole body, or what ended it.
async fn read<B>(body: B) -> Result<Bytes, B::Error>
where
    B: http_body::Body<Data = Bytes>,
{
    Ok(body.collect().await?.to_bytes())
}
