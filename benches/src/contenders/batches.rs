//! Calls one after the other, with what is not theirs left out.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use http::Request;
use tokio::runtime::Runtime;

use super::{Body, Caller};
use crate::callgrind::collected;

/// Requests are made beforehand, but no more at once than the allocator keeps apart when they are let go: glibc keeps seven
/// pieces of a size for each thread. Beyond that each further one costs it hundreds of instructions, whoever made the call,
/// while a program in its steady state makes as many requests as it lets go.
const BATCH: usize = 6;

/// So many calls (some more, to whole batches): nanoseconds of each, and what callgrind counts.
///
/// Every call must end well: one that gave up early would be cheap.
pub fn in_batches(runtime: &Runtime, mut caller: impl Caller, calls: usize, make: impl Fn() -> Request<Body>) -> f64 {
    let batches = calls.div_ceil(BATCH);
    let mut requests = Vec::with_capacity(BATCH);
    let mut spent = Duration::ZERO;
    for _ in 0..batches {
        requests.extend((0..BATCH).map(|_| make()));
        let caller = &mut caller;
        let requests = requests.drain(..);
        spent += collected(|| {
            runtime.block_on(async {
                let start = Instant::now();
                for request in requests {
                    assert_eq!(black_box(caller.call(request).await.expect("an answer")).status(), 200);
                }
                start.elapsed()
            })
        });
    }
    spent.as_nanos() as f64 / (batches * BATCH) as f64
}
