//! The builder refuses every single broken rule, names it, and says which value breaks it.

use std::time::Duration;

use redial::{
    Backoff, Budget, FaultKind, Jitter, Place, PolicyError, StandardPolicy, Timeouts, Transient,
    policy::StandardPolicyBuilder,
};
use tracing::Level;

use crate::{
    capture::Capture,
    policies::timeouts,
    script::{ms, secs},
};

fn builder() -> StandardPolicyBuilder {
    with(Transient::usual())
}

fn with(transient: Transient) -> StandardPolicyBuilder {
    StandardPolicy::builder("shop", timeouts(1_000, 10_000), transient)
}

fn timed(attempt: Duration, total: Duration) -> StandardPolicyBuilder {
    StandardPolicy::builder("shop", Timeouts { attempt, total }, Transient::usual())
}

/// Breaks exactly this rule, and the text says so with these words.
#[track_caller]
fn breaks(builder: StandardPolicyBuilder, rule: &str, words: &[&str]) {
    let error = builder.build().expect_err(rule);
    assert_eq!(error.rules().collect::<Vec<_>>(), [rule], "{error}");
    let text = error.to_string();
    assert!(text.starts_with("the policy `shop any` breaks 1 rule:\n  S"), "{text}");
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn the_defaults_keep_all_rules() {
    let policy = builder().build().unwrap();
    assert!(policy.warnings().is_empty());
    assert_eq!((policy.provider(), policy.operation()), ("shop", "any"));
    StandardPolicy::unretried("shop", secs(5)).unwrap();
}

#[test]
fn s5_a_business_status() {
    for code in [400, 401, 403, 404, 409, 410, 422, 499] {
        breaks(with(Transient::usual().status(code)), "S5", &[&code.to_string(), "without a reason", "status_because"]);
        breaks(with(Transient::usual().status_because(code, " ")), "S5", &["without a reason"]);
        with(Transient::usual().status_because(code, "documented: passes within a second")).build().unwrap();
    }
    with(Transient::none().status(408).status(425).status(429).status(507).status(599)).build().unwrap();
}

#[test]
fn s5_a_status_that_is_no_failure() {
    for code in [100, 200, 204, 301, 304] {
        let transient = Transient::usual().status_because(code, "however good the reason");
        breaks(with(transient), "S5", &[&code.to_string(), "not a failure"]);
    }
}

#[test]
fn s7_a_rejection_without_a_document() {
    breaks(with(Transient::usual().rejected(429, "")), "S7", &["429", "empty reason"]);
}

#[test]
fn s7_evidence_for_no_reason() {
    breaks(builder().idempotent(" \t"), "S7", &["empty reason"]);
}

#[test]
fn s7_a_precondition_without_a_name() {
    for name in ["", " "] {
        breaks(builder().precondition_query(name), "S7", &["query", "without a name"]);
    }
    builder().precondition_query("ifGenerationMatch").build().unwrap();
}

#[test]
fn s8_no_attempt_timeout() {
    breaks(timed(secs(0), secs(10)), "S8", &["attempt timeout is zero"]);
}

#[test]
fn s8_no_total() {
    breaks(timed(secs(1), secs(0)), "S8", &["total timeout is zero"]);
    breaks(timed(secs(1), secs(0)).attempts(1), "S8", &["total timeout is zero"]);
}

#[test]
fn s8_a_total_above_a_day() {
    let day = secs(24 * 60 * 60);
    timed(secs(1), day).build().unwrap();
    breaks(timed(secs(1), day + ms(1)), "S8", &["at most a day"]);
    breaks(timed(secs(1), Duration::MAX), "S8", &["at most a day"]);
}

#[test]
fn s8_an_attempt_as_long_as_the_total() {
    breaks(timed(secs(10), secs(10)), "S8", &["10s", "not shorter"]);
    breaks(timed(secs(11), secs(10)), "S8", &["11s", "not shorter"]);
    breaks(timed(secs(11), secs(10)).attempts(1), "S8", &["longer"]);
    // One attempt alone may take all the time there is.
    timed(secs(10), secs(10)).attempts(1).build().unwrap();
}

#[test]
fn s9_no_floor() {
    breaks(builder().backoff(Backoff::default().floor(ms(0))), "S9", &["floor", "zero"]);
}

#[test]
fn s9_no_first_wait() {
    breaks(builder().backoff(Backoff::exponential(ms(0)).max(secs(1))), "S9", &["initial", "zero"]);
}

#[test]
fn s9_a_first_wait_below_the_floor() {
    breaks(builder().backoff(Backoff::exponential(ms(10)).max(secs(1))), "S9", &["initial", "below `floor`"]);
}

#[test]
fn s10_no_jitter_for_no_reason() {
    breaks(builder().backoff(Backoff::default().jitter(Jitter::None)), "S10", &["no jitter"]);
    breaks(builder().backoff(Backoff::default().unjittered("  ")), "S10", &["no reason"]);
    breaks(builder().backoff(Backoff::fixed(secs(1), "")), "S10", &["no reason"]);
    builder().backoff(Backoff::fixed(secs(1), "one client in the world")).build().unwrap();
}

#[test]
fn s10_no_room_for_jitter() {
    breaks(builder().backoff(Backoff::exponential(ms(50)).max(secs(1))), "S10", &["no room"]);
}

#[test]
fn s11_waits_that_shrink() {
    for multiplier in [0.99, 0.0, -2.0, f64::NAN, f64::INFINITY] {
        breaks(builder().backoff(Backoff::default().multiplier(multiplier)), "S11", &["multiplier"]);
    }
    let ignored = Backoff::default().jitter(Jitter::Decorrelated).multiplier(2.0);
    breaks(builder().backoff(ignored), "S11", &["decorrelated"]);
}

#[test]
fn s11_no_cap() {
    breaks(builder().backoff(Backoff::exponential(secs(1))), "S11", &["no `max`"]);
}

#[test]
fn s11_a_cap_above_a_day() {
    breaks(builder().backoff(Backoff::default().max(secs(24 * 60 * 60 + 1))), "S11", &["above a day"]);
}

#[test]
fn s11_a_first_wait_above_the_cap() {
    breaks(builder().backoff(Backoff::exponential(secs(2)).max(secs(1))), "S11", &["initial", "above `max`"]);
}

#[test]
fn s12_no_attempt() {
    breaks(builder().attempts(0), "S12", &["attempts = 0", "first try counts"]);
}

#[test]
fn s12_many_attempts_for_no_reason() {
    for attempts in [4, 9] {
        breaks(builder().attempts(attempts), "S12", &["without a reason", "attempts_because"]);
        breaks(builder().attempts_because(attempts, ""), "S12", &["without a reason"]);
        builder().attempts_because(attempts, "a queue that drains within minutes").build().unwrap();
        // The last word counts.
        breaks(builder().attempts_because(5, "once").attempts(attempts), "S12", &["without a reason"]);
    }
}

#[test]
fn s12_what_retries_elsewhere_multiplies() {
    let gateway = |attempts| builder().elsewhere(Place::Gateway, "nginx", attempts);
    let six = ["6 requests a call at worst (3 attempts here x 2 by the gateway `nginx`)", "attempts_because"];
    breaks(gateway(2), "S12", &six);
    breaks(gateway(2).attempts_because(3, " "), "S12", &six);
    breaks(gateway(4).attempts_because(3, "however good"), "S12", &["12 requests", "at most 9"]);
    breaks(gateway(u32::MAX), "S12", &["at most 9"]);
    let both = gateway(2).elsewhere(Place::Sdk, "the SDK", 2).attempts(1);
    breaks(both, "S12", &["(1 attempts here x 2 by the gateway `nginx` x 2 by the sdk `the SDK`)"]);

    let policy = gateway(2).attempts_because(3, "until the gateway is gone").build().unwrap();
    assert_eq!(policy.worst_case_requests(), 6);
    let [declared] = policy.elsewhere() else { panic!("one retry elsewhere") };
    assert_eq!((declared.place, &*declared.by, declared.attempts), (Place::Gateway, "nginx", 2));
    let [warning] = policy.warnings() else { panic!("one warning") };
    assert!(warning.starts_with("6 requests a call at worst"), "{warning}");

    // Few enough needs no reason, but it is said; what was switched off multiplies nothing.
    let few = builder().attempts(1).elsewhere(Place::Client, "reqwest", 3).build().unwrap();
    assert_eq!((few.worst_case_requests(), few.warnings().len()), (3, 1));
    let off = gateway(1).build().unwrap();
    assert_eq!((off.worst_case_requests(), off.warnings().len()), (3, 0));
}

#[test]
fn s13_a_declaration_that_says_nothing() {
    breaks(builder().elsewhere(Place::Application, " ", 2).attempts(1), "S13", &["application", "without a name"]);
    breaks(builder().elsewhere(Place::Sdk, "octocrab", 0), "S13", &["0 attempts", "1 means switched off"]);
}

#[test]
fn s12_too_many_attempts() {
    for attempts in [10, 1_000, u32::MAX] {
        breaks(builder().attempts_because(attempts, "none is good enough"), "S12", &["at most 9"]);
    }
}

fn eight() -> PolicyError {
    let transient = Transient::usual().status(404).rejected(429, "");
    StandardPolicy::builder("shop", timeouts(10_000, 10_000), transient)
        .operation("orders.create")
        .idempotent("")
        .attempts(12)
        .backoff(Backoff::exponential(ms(100)).multiplier(0.5).floor(ms(0)).jitter(Jitter::None).max(secs(1)))
        .build()
        .unwrap_err()
}

#[test]
fn all_broken_rules_are_named_at_once() {
    let error = eight();
    println!("{error}");
    assert_eq!(error.rules().collect::<Vec<_>>(), ["S5", "S7", "S7", "S8", "S9", "S10", "S11", "S12"]);
    assert!(error.to_string().starts_with("the policy `shop orders.create` breaks 8 rules:"));
    assert_eq!(format!("{error:?}"), error.to_string(), "what `unwrap` prints can be read");
}

#[test]
fn an_attempt_that_can_never_start_is_warned_of() {
    let (capture, _guard) = Capture::start();
    let waits = Backoff::exponential(secs(6)).max(secs(6)).floor(secs(5));
    let policy = builder().backoff(waits).build().unwrap();
    let [warning] = policy.warnings() else { panic!("one warning") };
    assert_eq!(warning, "attempt 3 can never start: the waits before it are 10s at the least, the total is 10s");
    let said = capture.ours();
    assert_eq!((said.len(), said[0].level, said[0].get("message")), (1, Level::WARN, &**warning));
    assert_eq!((said[0].get("provider"), said[0].get("operation")), ("shop", "any"));
    // One that could, if all goes fast, is not.
    let waits = Backoff::exponential(secs(6)).max(secs(6)).floor(ms(4_999));
    assert!(builder().backoff(waits).build().unwrap().warnings().is_empty());
}

#[test]
fn s1_an_error_that_nobody_knows() {
    breaks(with(Transient::usual().fault(FaultKind::Unclassified)), "S1", &["unclassified"]);
}

#[test]
fn s5_what_is_no_status() {
    for status in [0, 99, 612, u16::MAX] {
        breaks(with(Transient::usual().status(status)), "S5", &[&status.to_string(), "no status"]);
    }
}

#[test]
fn s5_a_reason_is_a_reason_wherever_it_was_given() {
    let documented = "the guide: refused before any work";
    assert!(with(Transient::usual().rejected(403, documented)).build().is_ok());
    assert!(with(Transient::usual().status_because(403, "").status_because(403, documented)).build().is_ok());
    // And is gone with the status that it was given for.
    let again = Transient::usual().status_because(403, documented).without_status(403).status(403);
    breaks(with(again), "S5", &["403"]);
}

#[test]
fn s9_a_floor_below_what_timers_can_tell() {
    let nanosecond = std::time::Duration::from_nanos(1);
    breaks(builder().backoff(Backoff::default().floor(nanosecond)), "S9", &["1ns", "1 ms"]);
}

#[test]
fn s10_jitter_that_is_none() {
    let wait = std::time::Duration::from_millis(100);
    let nearly_fixed = Backoff::exponential(wait).max(wait).floor(wait - std::time::Duration::from_nanos(1));
    breaks(builder().backoff(nearly_fixed), "S10", &["no room for jitter"]);
}

#[test]
fn s15_a_provider_without_a_name() {
    for nameless in
        [StandardPolicy::builder(" ", timeouts(1_000, 9_000), Transient::usual()), builder().operation("\n")]
    {
        let error = nameless.build().unwrap_err();
        assert_eq!(error.rules().collect::<Vec<_>>(), ["S15"], "{error}");
    }
}

#[test]
fn s20_no_budget_and_no_reason() {
    breaks(builder().budget(Budget::unlimited("  ")), "S20", &["unlimited", "reason"]);
}

#[test]
fn a_name_is_one_line_without_secrets() {
    let policy = StandardPolicy::builder("two\nlines", timeouts(1_000, 9_000), Transient::usual())
        .operation("https://user:s3cret@host/p?key=K123")
        .build()
        .unwrap();
    assert_eq!((policy.provider(), policy.operation()), ("two lines", "https://host/p?…"));
}
