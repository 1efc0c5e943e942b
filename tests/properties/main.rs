//! What holds for every call, whatever happens: random scripts, methods, evidence, policies and deadlines, on paused
//! time.

#[path = "../common/script.rs"]
mod script;

mod case;
mod judge;
mod negative;

use std::collections::BTreeMap;

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use crate::{case::cases, judge::violations};

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_keeps_the_rules(case in cases()) {
        let observed = case.run();
        let violated = violations(&case, &observed);
        prop_assert!(violated.is_empty(), "{violated:?}\n{observed:#?}");
    }
}

/// The cases are not all of one kind: every end is reached, and many calls are repeated more than once.
#[test]
fn the_cases_reach_every_end() {
    let mut runner = TestRunner::deterministic();
    let mut ends = BTreeMap::<String, u32>::new();
    for _ in 0..1_000 {
        let observed = cases().new_tree(&mut runner).unwrap().current().run();
        let end = match observed.report.as_ref().map(|report| report.stop()) {
            None => "at once".to_owned(),
            Some(None) => "success after retry".to_owned(),
            Some(Some(stop)) => stop.to_string(),
        };
        *ends.entry(end).or_default() += 1;
        if observed.seen.len() > 2 {
            *ends.entry("repeated more than once".to_owned()).or_default() += 1;
        }
    }
    println!("{ends:?}");
    for end in [
        "at once",
        "success after retry",
        "repeated more than once",
        "permanent",
        "no-evidence",
        "attempts",
        "budget",
        "deadline",
        "wait-too-long",
        "not-ready",
        "upgrade",
    ] {
        assert!(ends.get(end).is_some_and(|count| *count >= 5), "{end}: {ends:?}");
    }
}
