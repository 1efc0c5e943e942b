//! Two services in a row, on real sockets: `cargo test --test paths -- --nocapture counts` prints the table.

use redial::BoxError;

use crate::{
    chain::{Manners, call},
    script::secs,
};

#[tokio::test]
async fn counts() -> Result<(), BoxError> {
    println!("| told | read | once | to the middle | to the back |");
    println!("| --- | --- | --- | --- | --- |");
    for (told, read, once, back) in [
        (false, false, false, 9),
        (true, false, false, 9),
        (false, true, true, 9),
        (true, true, false, 9),
        // Three for the front's first attempt, and one for each of its repeats.
        (true, true, true, 5),
    ] {
        let outcome = call(Manners { told, read, once }, secs(5)).await?;
        println!("| {told} | {read} | {once} | {} | {} |", outcome.middle, outcome.back);
        assert_eq!((outcome.status.as_u16(), outcome.middle, outcome.back), (503, 3, back));
    }
    Ok(())
}

/// A hop further on, a repeat is one still, and nobody has more time than the front has.
#[tokio::test]
async fn what_the_front_wants_reaches_the_back() -> Result<(), BoxError> {
    let outcome = call(Manners { told: true, read: true, once: true }, secs(5)).await?;
    let text = |name: &'static str| {
        outcome.heads.iter().map(move |head| head.get(name).map_or("-", |value| value.to_str().unwrap_or("?")))
    };
    assert_eq!(text("x-envoy-attempt-count").collect::<Vec<_>>(), ["1", "2", "3", "2", "3"]);
    for left in text("x-envoy-expected-rq-timeout-ms") {
        // The middle's own attempts may take a minute.
        assert!((1..=5_000).contains(&left.parse::<u64>()?), "{left}");
    }

    let unread = call(Manners { told: true, read: false, once: false }, secs(5)).await?;
    let left = unread.heads.iter().filter_map(|head| head.get("x-envoy-expected-rq-timeout-ms")?.to_str().ok());
    assert!(left.into_iter().all(|left| left.parse::<u64>().is_ok_and(|left| left > 50_000)));
    Ok(())
}
