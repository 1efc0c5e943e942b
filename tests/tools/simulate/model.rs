//! The model itself: what follows from its description must come out.

use std::time::Duration;

use redial::{
    RequestOptions, StandardPolicy, Transient,
    policy::{Backoff, budget::Budget},
    simulate::{Figures, OtherBudget, Scenario, Strategy, TroubleKind, draw, run, run_watched},
};

use tokio::time::Instant;

use super::{builder, figures, scenario, strategy, with_budget};

#[test]
fn the_same_seed_gives_the_same_figures() {
    let brown_out = scenario("brown-out");
    let usual = with_budget("usual", Budget::usual());
    let first = figures(&brown_out, &usual);
    assert_eq!(first, figures(&brown_out, &usual));
    let mut another = brown_out.clone();
    another.seed += 1;
    assert_ne!(first, figures(&another, &usual));
}

#[test]
fn a_window_that_forgets_is_on_virtual_time_as_well() {
    let outage = scenario("outage");
    let finagle = with_budget("finagle", Budget::finagle(Duration::from_secs(10), 0, 0.2).unwrap());
    let first = figures(&outage, &finagle);
    assert_eq!(first, figures(&outage, &finagle));
    // A fifth of the first tries, and what the five seconds before had earned.
    assert!((1.19..1.26).contains(&first.load_factor), "{}", first.load_factor);
}

#[test]
fn first_tries_are_the_same_whatever_the_strategy() {
    let outage = scenario("outage");
    let calls = |figures: &Figures| figures.moments.iter().map(|moment| moment.calls).collect::<Vec<_>>();
    let none = figures(&outage, &Strategy::no_retry());
    assert_eq!(calls(&none), calls(&figures(&outage, &Strategy::at_once(3))));
    let rate = calls(&none).iter().sum::<u64>() as f64 / outage.length.as_secs_f64();
    let expected = f64::from(outage.clients) * outage.rate;
    assert!((rate / expected - 1.0).abs() < 0.03, "{rate} a second, expected {expected}");
}

#[test]
fn before_the_trouble_all_succeed_and_afterwards_again() {
    for name in Scenario::names() {
        let scenario = scenario(name);
        let none = figures(&scenario, &Strategy::no_retry());
        let begin = none.moments.iter().take(8);
        assert!(begin.clone().all(|moment| moment.succeeded == moment.calls && moment.calls > 0), "{name}");
        assert_eq!(none.recovery, Some(Duration::ZERO), "{name}");
        assert_eq!(none.load_factor, 1.0, "{name}");
    }
}

/// Grants so many repeats, and each success is one more.
struct Counted(u32);

impl OtherBudget for Counted {
    fn succeeded(&mut self, _: Instant) {
        self.0 += 1;
    }

    fn withdraw(&mut self, _: Instant) -> bool {
        let granted = self.0 > 0;
        self.0 -= u32::from(granted);
        granted
    }
}

#[test]
fn each_client_has_one_of_the_other_budgets() {
    let mut outage = scenario("outage");
    (outage.trouble.from, outage.trouble.until) = (Duration::ZERO, outage.length);
    let unlimited = || with_budget("unlimited", Budget::unlimited("tested"));
    let attempts = |figures: &Figures| figures.moments.iter().map(|moment| moment.arrivals).sum::<u64>();
    let none = attempts(&figures(&outage, &Strategy::no_retry()));
    let with = |tokens| attempts(&figures(&outage, &unlimited().budgeted(move |_| Counted(tokens))));
    assert_eq!(with(0), none);
    assert_eq!(with(7), none + 7 * u64::from(outage.clients));
    assert_eq!(with(u32::MAX), attempts(&figures(&outage, &unlimited())));
    // It stands beside the policy's own budget, and cannot loosen it.
    let usual = || with_budget("usual", Budget::usual());
    let both = figures(&outage, &usual().budgeted(|_| Counted(u32::MAX)));
    assert_eq!(both, figures(&outage, &usual()));
    // Where there is no policy, nobody asks it.
    assert_eq!(attempts(&figures(&outage, &Strategy::no_retry().budgeted(|_| Counted(9)))), none);
}

#[test]
fn what_no_policy_repeats_is_sent_once() {
    let outage = scenario("outage");
    let post = http::Request::post("http://orders.example/42").body(()).unwrap();
    let policy = builder().build().unwrap();
    let without_evidence = figures(&outage, &Strategy::policy("post", policy.clone(), &post));
    assert_eq!(without_evidence.load_factor, 1.0);
    // What the request itself says counts as well.
    let mut stated = post;
    stated.extensions_mut().insert(RequestOptions::new().idempotent("order numbers are unique"));
    assert!(figures(&outage, &Strategy::policy("stated", policy, &stated)).load_factor > 1.0);
    let nothing = builder().build().map(|_| Transient::none()).unwrap();
    let timeouts = redial::Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(10) };
    let unlisted = StandardPolicy::builder("orders", timeouts, nothing);
    assert_eq!(figures(&outage, &strategy("unlisted", unlisted)).load_factor, 1.0);
}

#[test]
fn no_attempt_comes_before_the_server_said() {
    let mut limited = scenario("rate-limit");
    let wait = Duration::from_secs(60);
    let TroubleKind::RateLimit { retry_after, .. } = &mut limited.trouble.kind else { panic!("a limit") };
    *retry_after = Some(wait);
    // The deadline is ten seconds away: to wait that long is useless, so nothing is repeated.
    let unlimited = || with_budget("unlimited", Budget::unlimited("tested"));
    assert_eq!(figures(&limited, &unlimited()).load_factor, 1.0);
    let TroubleKind::RateLimit { retry_after, .. } = &mut limited.trouble.kind else { panic!("a limit") };
    *retry_after = None;
    assert!(figures(&limited, &unlimited()).load_factor > 1.3);
}

/// Each 429 holds all retries of its client, so that they gather while the limit lasts.
#[test]
fn those_who_were_held_do_not_come_back_together() {
    let limited = scenario("rate-limit");
    let timeouts = redial::Timeouts { attempt: Duration::from_secs(2), total: Duration::from_secs(60) };
    let rejecting = Transient::usual().rejected(429, "tested");
    let held = figures(&limited, &strategy("held", StandardPolicy::builder("orders", timeouts, rejecting)));
    let none = figures(&limited, &Strategy::no_retry());
    println!("peak {} of {}, success {} of {}", held.peak, none.peak, held.success, none.success);
    assert!(held.peak < 3.0 * none.peak, "{} of {}", held.peak, none.peak);
    assert!(held.success > none.success + 0.1, "{} of {}", held.success, none.success);
}

#[test]
fn a_silent_server_gathers_callers_for_as_long_as_an_attempt_may_take() {
    let mut silent = scenario("outage");
    let unlimited = with_budget("unlimited", Budget::unlimited("tested"));
    let quick = figures(&silent, &unlimited);
    silent.trouble.kind = TroubleKind::Silence;
    let slow = figures(&silent, &unlimited);
    // Those who wait for two seconds come back together when the trouble is over, and are too many.
    let second = Duration::from_secs(1);
    assert!(quick.recovery.is_some_and(|time| time <= second), "{:?}", quick.recovery);
    assert!(slow.recovery.is_some_and(|time| time >= 2 * second), "{:?}", slow.recovery);
}

#[test]
fn longer_waits_are_less_load_at_once() {
    let outage = scenario("outage");
    let with_backoff = |initial: u64| {
        let backoff = Backoff::exponential(Duration::from_millis(initial)).max(Duration::from_secs(5));
        strategy("backoff", builder().backoff(backoff).budget(Budget::unlimited("tested")))
    };
    // Those that wait long enough live through the end of the outage.
    let (short, long) = (figures(&outage, &with_backoff(100)), figures(&outage, &with_backoff(2_000)));
    assert!(long.success > short.success + 0.02, "{} and {}", long.success, short.success);
}

#[test]
fn progress_goes_from_nothing_to_all() {
    let mut seen = Vec::new();
    run_watched(&scenario("outage"), &Strategy::no_retry(), |done| seen.push(done)).unwrap();
    assert!(seen.is_sorted() && seen.iter().all(|done| (0.0..=1.0).contains(done)), "{seen:?}");
}

#[test]
fn what_cannot_be_run_is_refused() {
    let mut endless = scenario("outage");
    endless.rate = -1.0;
    let refused = run(&endless, &Strategy::no_retry()).unwrap_err();
    assert!(refused.to_string().contains("`rate`"), "{refused}");
}

#[test]
fn the_picture_names_every_strategy() {
    let scenario = scenario("outage").scaled_to(10);
    let runs = [Strategy::no_retry(), Strategy::at_once(3)].map(|strategy| figures(&scenario, &strategy));
    let path = std::env::temp_dir().join(format!("redial-picture-{}.svg", std::process::id()));
    draw(&scenario, &runs, &path).unwrap();
    let svg = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    for text in ["no retry", "3 attempts at once", "outage: 10 clients", "capacity"] {
        assert!(svg.contains(text), "{text}");
    }
    draw(&scenario, &runs, std::path::Path::new("/no/such/folder/x.svg")).unwrap_err();
}
