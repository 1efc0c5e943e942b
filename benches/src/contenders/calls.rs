//! Calls one after the other, with what is not theirs left out.

use std::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::pin,
    task::Context,
    time::{Duration, Instant},
};

use http::Request;
use tokio::runtime::Runtime;

use super::{Body, Caller};
use crate::callgrind::collected;

/// So many calls in one task: nanoseconds of each, and what callgrind counts. Both are of the call's own code: what the
/// runtime does between two polls is left out.
///
/// Each request is made just before its call, and apart from it. Were all made beforehand, thousands would be let go
/// without any being made, and the allocator's slow path would be part of what is measured: a program in its steady state
/// makes as many requests as it lets go.
pub fn calls(runtime: &Runtime, mut caller: impl Caller, calls: usize, make: impl Fn() -> Request<Body>) -> f64 {
    let spent = runtime.block_on(async {
        let spent = Cell::new(Duration::ZERO);
        for _ in 0..calls {
            let request = make();
            let mut call = pin!(None);
            timed(&spent, || call.set(Some(caller.call(request))));
            let polled = |cx: &mut Context<'_>| timed(&spent, || call.as_mut().as_pin_mut().expect("a call").poll(cx));
            let answer = poll_fn(polled).await.expect("an answer");
            // It must end well: a call that gave up early would be cheap.
            assert_eq!(answer.status(), 200);
            timed(&spent, || {
                drop(answer);
                call.set(None);
            });
        }
        spent.get()
    });
    spent.as_nanos() as f64 / calls as f64
}

fn timed<T>(spent: &Cell<Duration>, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = collected(work);
    spent.set(spent.get() + start.elapsed());
    done
}
