//! What a call costs in memory, counted, beside what tower's own layers cost on the same request.
//!
//! `cargo test --test allocations -- --nocapture` prints the table.

use std::{
    future::Future,
    hint::black_box,
    task::{Context, Poll, Waker},
    time::Duration,
};

use allocation_counter::measure;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use redial::{Backoff, RetryLayer, StandardPolicy, Timeouts, Transient, retry::Retry};
use tower::{Service, ServiceBuilder, ServiceExt};

#[path = "common/memory.rs"]
mod memory;
#[path = "common/towers.rs"]
mod towers_policy;

use memory::{Memory, request};
use towers_policy::Towers;

type Body = Full<Bytes>;

fn policy() -> StandardPolicy {
    let timeouts = Timeouts { attempt: Duration::from_secs(1), total: Duration::from_secs(10) };
    let backoff = Backoff::exponential(Duration::from_millis(2)).max(Duration::from_millis(4));
    StandardPolicy::builder("things", timeouts, Transient::usual())
        .backoff(backoff.floor(Duration::from_millis(1)))
        .idempotent("the test's own")
        .build()
        .expect("a policy")
}

fn ours(fails: u32) -> Retry<Memory, StandardPolicy> {
    ServiceBuilder::new().layer(RetryLayer::new(policy())).service(Memory::new(fails, 1))
}

fn towers(fails: u32) -> tower::timeout::Timeout<tower::retry::Retry<Towers, tower::timeout::Timeout<Memory>>> {
    ServiceBuilder::new()
        .timeout(Duration::from_secs(10))
        .retry(Towers { left: 2, wait: Duration::from_millis(2) })
        .timeout(Duration::from_secs(1))
        .service(Memory::new(fails, 1))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// Allocations and bytes of one call, the second of its kind: the first also pays for what is made once a thread.
fn one_call<S, RB>(service: impl Fn() -> S) -> (u64, u64)
where
    S: Service<Request<Body>, Response = Response<RB>> + Clone,
    S::Error: std::fmt::Debug,
{
    let runtime = runtime();
    let call = |mut service: S, request| {
        runtime.block_on(async move { drop(service.ready().await.expect("ready").call(request).await) });
    };
    let service = service();
    call(service.clone(), request());
    let request = request();
    let counted = measure(|| call(service, request));
    (counted.count_total, counted.bytes_total)
}

fn future_size<S: Service<Request<Body>>>(_: S) -> usize {
    size_of::<S::Future>()
}

#[test]
fn the_first_attempt_allocates_three_times() {
    let (bare, _) = one_call(|| Memory::new(0, 1));
    let (count, _) = one_call(|| ours(0));
    // The head, and the two of the map that holds the marker.
    assert!(count - bare <= 3, "{count} allocations, {bare} of them the bare service's");
}

#[test]
fn two_retries_allocate_no_more_than_they_must() {
    let (bare, _) = one_call(|| Memory::new(0, 1));
    let (count, _) = one_call(|| ours(2));
    // 3 at first; 4 a retry (a header map 2, the map of markers 2) and 2 to unpack the head; the report and its place in
    // the response 5. The names that no table knows are the policy's since the call before.
    // Counting a failed attempt and its retry: the labels of three series, and the status in two of them.
    let counting = if cfg!(feature = "metrics") { 2 * 6 } else { 0 };
    assert!(count - bare <= 18 + counting, "{count} allocations, {bare} of them the bare service's");
}

#[test]
fn a_thousand_in_flight_cost_no_more_each() {
    const CALLS: u64 = 1000;
    let runtime = runtime();
    let _inside = runtime.enter();
    let mut service = ours(0);
    let requests: Vec<_> = (0..CALLS).map(|_| request()).collect();
    let mut calls = Vec::with_capacity(requests.len());
    let counted = measure(|| {
        for request in requests {
            let mut call = Box::pin(service.call(request));
            let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Pending));
            calls.push(call);
        }
    });
    let boxes = CALLS;
    assert!(counted.count_total - boxes <= 3 * CALLS, "{} allocations for {CALLS} calls", counted.count_total);
}

/// Bytes that a call holds while it waits for its second attempt, its future and its timer included.
fn held_in_a_wait() -> i64 {
    let runtime = runtime();
    let _inside = runtime.enter();
    let wait = |service: &mut Retry<Memory, StandardPolicy>| {
        let mut call = Box::pin(service.call(request()));
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        call
    };
    let service = || ServiceBuilder::new().layer(RetryLayer::new(policy())).service(Memory::new(2, 0));
    drop(wait(&mut service()));
    let (mut service, mut call) = (service(), None);
    let counted = measure(|| call = Some(wait(&mut service)));
    drop(call);
    counted.bytes_current
}

#[test]
fn a_call_that_waits_holds_little() {
    let held = held_in_a_wait();
    assert!(held <= 2600, "{held} bytes");
}

#[test]
fn extensions_of_the_caller_cost_their_clone() {
    let with_extension = || {
        let mut request = request();
        request.extensions_mut().insert(String::from("the caller's"));
        request
    };
    let clone = measure(|| drop(black_box(with_extension().extensions().clone()))).count_total
        - measure(|| drop(black_box(with_extension()))).count_total;
    let runtime = runtime();
    let _inside = runtime.enter();
    let mut service = ours(0);
    drop(service.call(with_extension()));
    let request = with_extension();
    let counted = measure(|| drop(service.call(request)));
    // The head and the clone; the marker goes into the map that is there, where it has room.
    assert!(counted.count_total <= 1 + clone + 1, "{} allocations, {clone} for a clone", counted.count_total);
}

#[test]
fn a_block_that_succeeds_at_once_allocates_its_statement() {
    let runtime = runtime();
    let (unstated, stated) = (policy(), policy());
    let run = |policy: &StandardPolicy, reason: Option<&'static str>| {
        let block = redial::retry(policy, |attempt| async move { Ok(attempt.number()) });
        let block = match reason {
            Some(reason) => block.idempotent(reason),
            None => block.as_the_policy_says(),
        };
        let counted = measure(|| assert_eq!(runtime.block_on(async { block.await }).ok(), Some(1)));
        counted.count_total
    };
    assert_eq!((run(&unstated, None), run(&stated, Some("it only reads"))), (0, 0));
}

#[test]
fn table() {
    let bare = || Memory::new(0, 1);
    let (bare_count, bare_bytes) = one_call(bare);
    println!("a call over the bare service     redial   tower retry + timeout");
    for (what, fails) in [("first attempt succeeds", 0), ("two retries", 2)] {
        let ((count, bytes), (towers_count, towers_bytes)) = (one_call(|| ours(fails)), one_call(|| towers(fails)));
        println!(
            "{what:<24} {:>3} ({:>5} B)   {:>3} ({:>5} B)",
            count - bare_count,
            bytes - bare_bytes,
            towers_count - bare_count,
            towers_bytes - bare_bytes,
        );
        assert!(count < towers_count || fails > 0);
    }
    println!("held while it waits to retry   {} B", held_in_a_wait());
    let (bare, ours, towers) = (future_size(bare()), future_size(ours(0)), future_size(towers(0)));
    println!("size of the future (bare {bare} B)   {ours} B         {towers} B");
    assert!(ours < towers, "{ours} bytes, tower's {towers}");
}
