//! A block of code is repeated by the rules of a request: waits, evidence, what the failure says, what the server says.

use std::{
    cell::RefCell,
    fmt, io,
    sync::{Arc, Mutex},
};

use http::{Method, Response};
use redial::{
    AttemptOutcome, AttemptTimedOut, BoxError, Budget, Error, Failure, FaultKind, Hold, HoldScope, Reach,
    RequestOptions, RetryLayer, StandardPolicy, StopReason, Transient, policy::budget::BudgetSetting,
};
use tokio::time::{Instant, sleep};
use tower::{Layer, ServiceExt};
use tracing::Level;

use crate::{
    capture::Capture,
    policies::{builder, policy},
    script::{Script, ms, request, secs, status},
};

/// The caller's own error.
#[derive(Debug, PartialEq)]
struct Own(&'static str);

impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Own {}

pub fn reset() -> io::Error {
    io::Error::from(io::ErrorKind::ConnectionReset)
}

/// Runs a block that fails in these ways, one an attempt, and then succeeds; and when each attempt began.
async fn run(policy: &StandardPolicy, fails: Vec<Failure>) -> (Result<u32, Error>, Vec<u128>) {
    let start = Instant::now();
    let began = RefCell::new(Vec::new());
    let fails = RefCell::new(fails.into_iter());
    let result = redial::retry(policy, |attempt| {
        began.borrow_mut().push(start.elapsed().as_millis());
        let failed = fails.borrow_mut().next();
        async move { failed.map_or(Ok(attempt.number()), Err) }
    });
    let result = result.idempotent("it only reads").await;
    (result, began.into_inner())
}

fn answered(status: u16, headers: &[(&'static str, &str)]) -> Failure {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    Failure::check(response.body(()).unwrap()).map(drop).unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn it_is_run_again_after_the_policys_waits() {
    let (capture, _guard) = Capture::start();
    let (result, began) = run(&policy(), vec![reset().into(), Failure::transient("not yet")]).await;
    assert_eq!((result.unwrap(), began), (3, vec![0, 100, 200]));
    let said = capture.ours();
    assert_eq!(said.iter().map(|said| said.level).collect::<Vec<_>>(), [Level::DEBUG, Level::DEBUG, Level::INFO]);
    assert_eq!((said[0].get("provider"), said[0].get("error.type"), said[0].get("wait_ms")), ("shop", "reset", "100"));
    assert_eq!((said[2].get("message"), said[2].get("attempt")), ("succeeded after retry", "3"));
    // There is neither a method nor a target.
    assert!(
        said.iter().all(|said| !said.fields.contains_key("url") && !said.fields.contains_key("http.request.method"))
    );
}

#[tokio::test(start_paused = true)]
async fn success_at_once_says_nothing() {
    let (capture, _guard) = Capture::start();
    assert_eq!(run(&policy(), vec![]).await.0.unwrap(), 1);
    assert!(capture.ours().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_success_has_a_report_where_there_is_something_to_report() {
    for (fails, expected) in [(0, None), (2, Some(3))] {
        let policy = policy();
        let block = redial::retry(&policy, |attempt| async move {
            if attempt.number() <= fails { Err(Failure::transient("not yet")) } else { Ok(()) }
        });
        let mut block = std::pin::pin!(block.idempotent("it only reads").into_future());
        block.as_mut().await.unwrap();
        let report = block.report();
        assert_eq!(report.map(|report| report.attempts().len()), expected);
        if let Some(report) = report {
            assert_eq!((report.stop(), report.elapsed(), report.outcome_unknown()), (None, ms(200), true));
            let last = report.attempts().last().unwrap();
            assert_eq!((last.outcome, last.reach), (AttemptOutcome::Done, Reach::Answered));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_at_the_end() {
    let (capture, _guard) = Capture::start();
    let (result, began) = run(&policy(), (0..3).map(|_| reset().into()).collect()).await;
    let error = result.unwrap_err();
    assert_eq!(began, [0, 100, 200]);
    assert!(error.is_exhausted());
    assert_eq!(error.fault().map(|fault| fault.kind()), Some(FaultKind::Reset));
    assert_eq!(error.find_source::<io::Error>().map(io::Error::kind), Some(io::ErrorKind::ConnectionReset));
    assert_eq!(
        error.to_string(),
        "shop any: the block failed after 3 attempts in 200.0ms (all attempts made): connection reset"
    );
    let report = error.report().unwrap();
    let attempts: Vec<_> = report.attempts().iter().map(|one| (one.number, one.outcome, one.reach, one.wait)).collect();
    let (reset, unknown) = (AttemptOutcome::Fault(FaultKind::Reset), Reach::Unknown);
    let expected = [(1, reset, unknown, Some(ms(100))), (2, reset, unknown, Some(ms(100))), (3, reset, unknown, None)];
    assert_eq!(attempts, expected);
    assert!(report.outcome_unknown());
    let errors = capture.at(Level::ERROR);
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].get("stop"), errors[0].get("error.type")), ("attempts", "reset"));
}

#[tokio::test(start_paused = true)]
async fn what_a_failure_says_of_itself_holds() {
    let policy = policy();
    for (failure, attempts, stop, errors) in [
        // Nobody listed an error that nobody knows.
        (Failure::from(Own("strange")), 1, StopReason::Permanent, 1),
        (Failure::transient(Own("strange")), 2, StopReason::Permanent, 1),
        // A business failure is no ERROR.
        (Failure::permanent(Own("no such order")), 1, StopReason::Permanent, 0),
        (Failure::permanent(reset()), 1, StopReason::Permanent, 0),
        (answered(404, &[]), 1, StopReason::Permanent, 0),
        (answered(503, &[]), 2, StopReason::Permanent, 1),
        (answered(503, &[("retry-after", "61")]), 1, StopReason::WaitTooLong, 1),
    ] {
        let (capture, _guard) = Capture::start();
        let what = format!("{failure:?}");
        let (result, began) = run(&policy, vec![failure, Own("the end").into()]).await;
        let error = result.unwrap_err();
        assert_eq!((began.len(), error.stop()), (attempts, Some(stop)), "{what}");
        assert_eq!(capture.at(Level::ERROR).len(), errors, "{what}: {:?}", capture.ours());
        assert!(error.report().is_some(), "{what}");
    }
    let (result, _) = run(&policy, vec![Failure::permanent(Own("no such order"))]).await;
    assert_eq!(result.unwrap_err().find_source::<Own>(), Some(&Own("no such order")));
}

#[tokio::test(start_paused = true)]
async fn never_earlier_than_was_said() {
    for failure in [Failure::retry_after(Own("busy"), secs(2)), answered(429, &[("retry-after", "2")])] {
        let (result, began) = run(&policy(), vec![failure]).await;
        assert_eq!(result.unwrap(), 2);
        assert!((2_000..4_000).contains(&began[1]), "{began:?}");
    }
    // Longer than the call may take: at once, with the time.
    let (result, began) = run(&policy(), vec![Failure::retry_after(Own("busy"), secs(90))]).await;
    let error = result.unwrap_err();
    assert_eq!((began, error.stop()), (vec![0], Some(StopReason::WaitTooLong)));
    assert!(error.retry_at().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_policy_judges_answers() {
    // Its own judge, and a look into the body.
    let judging = builder()
        .judge_with(|_, outcome, verdict| match outcome.status().map(|status| status.as_u16()) {
            Some(409) => redial::Verdict::verify(),
            Some(200) => redial::Verdict::success(),
            _ => verdict,
        })
        .build()
        .unwrap();
    for (failure, stop) in [
        (answered(409, &[]), StopReason::Verify),
        // The block calls it a failure, whatever the policy thinks.
        (Failure::answer(&Response::new(())), StopReason::Permanent),
    ] {
        let (result, began) = run(&judging, vec![failure]).await;
        assert_eq!((began.len(), result.unwrap_err().stop()), (1, Some(stop)));
    }
    let looking = builder()
        .judge_with(|_, outcome, verdict| match outcome.body() {
            None if outcome.status().is_some() => redial::Verdict::look_into_body(),
            Some(b"busy") => redial::Verdict::transient(),
            _ => verdict,
        })
        .build()
        .unwrap();
    let (result, began) =
        run(&looking, vec![answered(418, &[]).with_body("busy"), answered(418, &[]).with_body("tea")]).await;
    assert_eq!((began.len(), result.unwrap_err().stop()), (2, Some(StopReason::Permanent)));
    // The caller's own error in place of the answer.
    let (result, _) = run(&policy(), vec![answered(404, &[]).with_source(Own("no such order"))]).await;
    assert!(result.unwrap_err().find_source::<Own>().is_some());
}

/// S7: a block may have done anything before it failed, whatever the last error proves or the last answer says.
#[tokio::test(start_paused = true)]
async fn without_a_statement_nothing_is_repeated() {
    for failure in [reset().into(), answered(425, &[]), Failure::transient("not yet")] {
        let mut failure = Some(failure);
        let policy = policy();
        let block = redial::retry(&policy, |_| std::future::ready(Err::<(), _>(failure.take().expect("once"))));
        let error = block.as_the_policy_says().await.unwrap_err();
        assert_eq!((error.stop(), error.report().unwrap().attempts().len()), (Some(StopReason::NoEvidence), 1));
        assert_eq!(error.report().unwrap().attempts()[0].reach, Reach::Unknown);
    }
    // An empty reason is none; the policy's own is one.
    let fails = || Err::<(), Failure>(reset().into());
    let error = redial::retry(&policy(), |_| std::future::ready(fails())).idempotent(" ").await.unwrap_err();
    assert_eq!(error.stop(), Some(StopReason::NoEvidence));
    let stated = builder().idempotent("it only reads").build().unwrap();
    let error = redial::retry(&stated, |_| std::future::ready(fails())).as_the_policy_says().await.unwrap_err();
    assert_eq!(error.stop(), Some(StopReason::Attempts));
}

/// A failure to connect proves that a request was not sent, and nothing of the block that it was the last of.
#[tokio::test(start_paused = true)]
async fn a_proof_of_a_call_is_none_of_the_block() {
    let client = RetryLayer::new(policy()).layer(Script::new([crate::script::fail(crate::script::Failure::Unsent)]));
    let policy = policy();
    let block = redial::retry(&policy, |_| {
        let client = client.clone();
        async move { Ok(client.oneshot(request(Method::GET)).await.map(drop)?) }
    });
    let error = block.as_the_policy_says().await.unwrap_err();
    assert_eq!((error.stop(), error.is_connect()), (Some(StopReason::NoEvidence), true));
    assert_eq!(error.report().unwrap().attempts()[0].reach, Reach::Unknown);
}

#[tokio::test(start_paused = true)]
async fn the_budget_is_the_policys() {
    let budget = Budget::custom(BudgetSetting::bucket(1.0)).unwrap();
    let policy = builder().budget(budget.clone()).build().unwrap();
    let (result, began) = run(&policy, (0..3).map(|_| reset().into()).collect()).await;
    assert_eq!((began.len(), result.unwrap_err().stop()), (2, Some(StopReason::Budget)));
    assert!(budget.level() < 1.0);
}

/// S17: what a request was told holds for the block's repeats, and what a block was told for requests.
#[tokio::test(start_paused = true)]
async fn one_hold_for_both() {
    let documented = || Transient::usual().rejected(429, "the guide: refused before work");
    let hold = Hold::new();
    let made = || StandardPolicy::builder("shop", crate::policies::timeouts(1_000, 60_000), documented());
    let policy = made().hold(HoldScope::Retries, hold.clone()).budget(Budget::unlimited("a test")).build().unwrap();
    let script = Script::new([status(429).retry_after("5"), status(200)]);
    let client = RetryLayer::new(policy.clone()).layer(script.clone());
    let told = tokio::spawn(client.oneshot(request(Method::GET)));
    tokio::task::yield_now().await;
    assert_eq!(script.count(), 1);
    let (result, began) = run(&policy, vec![reset().into()]).await;
    assert_eq!(result.unwrap(), 2);
    assert!(began[1] >= 5_000, "{began:?}");
    assert_eq!(told.await.unwrap().unwrap().status(), 200);

    let (result, began) = run(&policy, vec![answered(429, &[("retry-after", "7")])]).await;
    assert_eq!(result.unwrap(), 2);
    assert!(began[1] >= 7_000, "{began:?}");
}

#[tokio::test(start_paused = true)]
async fn options_tighten() {
    let runs = Mutex::new(0);
    let policy = policy();
    let block = redial::retry(&policy, |_| {
        *runs.lock().unwrap() += 1;
        async { Err::<(), Failure>(reset().into()) }
    });
    let error = block.idempotent("it only reads").options(RequestOptions::new().attempts(2)).await.unwrap_err();
    assert_eq!((*runs.lock().unwrap(), error.stop()), (2, Some(StopReason::Attempts)));
}

/// D9: dropped where it stands, of unknown outcome, and the next attempt is told so.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_is_dropped() {
    let held = Arc::new(());
    let seen = RefCell::new(Vec::new());
    let policy = policy();
    let block = redial::retry(&policy, |attempt| {
        seen.borrow_mut().push((attempt.earlier_unknown(), Arc::strong_count(&held), attempt.deadline().remaining()));
        let held = Arc::clone(&held);
        async move {
            let _held = held;
            if attempt.number() < 3 {
                sleep(secs(30)).await;
            }
            Ok(attempt.number())
        }
    });
    assert_eq!(block.idempotent("it only reads").await.unwrap(), 3);
    // Nothing of an attempt is there when the next one begins.
    assert_eq!(seen.into_inner(), [(false, 1, secs(1)), (true, 1, secs(1)), (true, 1, secs(1))]);

    let error = redial::retry(&policy, |_| std::future::pending::<Result<(), Failure>>()).as_the_policy_says().await;
    let error = error.unwrap_err();
    assert!(error.is_timeout() && error.stop() == Some(StopReason::NoEvidence));
    assert_eq!(error.find_source::<AttemptTimedOut>().map(AttemptTimedOut::after), Some(secs(1)));
}

/// S19, S3: what comes out can be sent, kept and asked.
#[tokio::test(start_paused = true)]
async fn it_can_be_spawned() {
    let policy = policy();
    let spawned = tokio::spawn(async move {
        let block = redial::retry(&policy, |_| async { Err::<(), _>(Failure::from("a text is an error")) });
        block.idempotent("it only reads").await
    });
    let error: BoxError = spawned.await.unwrap().unwrap_err().into();
    assert!(error.to_string().ends_with("a text is an error"), "{error}");
}

#[test]
fn a_failures_debug_shows_no_secret() {
    let failure = Failure::from(Own("https://user:word@host.example/path?token=secret failed"));
    let text = format!("{failure:?}");
    assert!(!text.contains("secret") && !text.contains("user:word"), "{text}");
    let text = format!("{:?}", answered(503, &[("set-cookie", "secret")]).with_body("secret"));
    assert!(!text.contains("secret"), "{text}");
}
