//! The plan, without a database.

use super::*;

fn candidate(id: i64, provider: Option<&str>) -> Candidate {
    Candidate {
        id: JobId(id),
        token: 1,
        job_type: "mail".to_owned(),
        target: id.to_string(),
        provider: provider.map(str::to_owned),
        newest: true,
        failures: 1,
        ghosts: 0,
    }
}

fn failures(failures: impl IntoIterator<Item = Candidate>) -> Candidates {
    Candidates { failures: failures.into_iter().collect(), ..Candidates::default() }
}

fn health(failing: bool, canary_out: bool) -> Vec<Health> {
    vec![Health { provider: "github".to_owned(), failing, canary_out }]
}

fn recovered(plan: &Plan) -> Vec<i64> {
    let recovered = |step: &Step| match step {
        Step::Recover { job, .. } => Some(job.id.0),
        _ => None,
    };
    plan.steps.iter().filter_map(recovered).collect()
}

#[test]
fn each_candidate_has_one_step() {
    let mut superseded = candidate(1, None);
    superseded.newest = false;
    let mut spent = candidate(2, None);
    spent.failures = 3;
    let plan = plan(failures([superseded, spent, candidate(3, None)]), &Recovery::default());
    assert!(matches!(plan.steps[0], Step::Supersede { ghost: false, .. }));
    assert!(matches!(&plan.steps[1], Step::Bury(burial) if burial.reason == DeadReason::Failures));
    assert!(matches!(plan.steps[2], Step::Recover { ghost: false, .. }));
}

#[test]
fn ghosts_and_failures_have_limits_of_their_own() {
    let mut ghost = candidate(1, None);
    (ghost.ghosts, ghost.failures) = (2, 9);
    let mut last = candidate(2, None);
    (last.ghosts, last.failures) = (3, 0);
    let plan = plan(Candidates { ghosts: vec![ghost, last], ..Candidates::default() }, &Recovery::default());
    assert_eq!(recovered(&plan), [1]);
    assert!(matches!(&plan.steps[1], Step::Bury(burial) if burial.ghost && burial.reason == DeadReason::Ghosts));
}

#[test]
fn one_job_alone_tries_a_failing_provider_out() {
    let jobs = || failures([candidate(1, Some("github")), candidate(2, None), candidate(3, Some("github"))]);
    let with = |providers| Candidates { providers, ..jobs() };
    let recovery = Recovery::default();

    let first = plan(with(health(true, false)), &recovery);
    assert_eq!(recovered(&first), [1, 2]);
    assert!(matches!(&first.steps[0], Step::Recover { delay, .. } if delay.is_zero()), "others wait for it");
    assert!(matches!(&first.steps[2], Step::Wait { reason: WaitReason::Canary, .. }));
    assert_eq!(recovered(&plan(with(health(true, true)), &recovery)), [2]);
    assert_eq!(recovered(&plan(with(health(false, true)), &recovery)), [1, 2, 3]);
    assert_eq!(recovered(&plan(with(health(true, true)), &recovery.canary(false))), [1, 2, 3]);
}

/// What is buried or closed takes no place.
#[test]
fn caps_count_successors() {
    let mut jobs: Vec<_> = (0..6).map(|id| candidate(id, Some("github"))).collect();
    jobs[0].failures = 3;
    jobs[1].newest = false;
    jobs.push(candidate(6, None));
    jobs.push(candidate(7, None));
    let plan = plan(failures(jobs), &Recovery::default().per_sweep(3).per_provider(2));
    assert_eq!(recovered(&plan), [2, 3, 6]);
    let waits = |step: &Step| match step {
        Step::Wait { job, reason } => Some((job.id.0, *reason)),
        _ => None,
    };
    let waits: Vec<_> = plan.steps.iter().filter_map(waits).collect();
    assert_eq!(waits, [(4, WaitReason::ProviderCap), (5, WaitReason::ProviderCap), (7, WaitReason::SweepCap)]);
}

#[test]
fn the_first_ghost_is_quick_and_later_ones_wait() {
    let recovery = Recovery::default().ghost_wait(Duration::from_secs(600)).sweep_every(Duration::from_secs(10));
    let spread = Duration::from_secs(10);
    for (nth, least) in [(1, 0), (2, 600), (3, 1800), (4, 4200)] {
        let least = Duration::from_secs(least);
        let delay = recovery.ghost_delay(nth);
        assert!((least..=least + spread).contains(&delay), "ghost {nth}: {delay:?}");
    }
    assert!(recovery.ghost_delay(u32::MAX) > Duration::from_secs(600), "no overflow");
}

#[test]
fn settings_that_cannot_be_worked_by_are_named() {
    let day = Duration::from_secs(24 * 60 * 60);
    assert!(Recovery::default().check().is_ok());
    for (recovery, name) in [
        (Recovery::default().failures(0), "failures is 0"),
        (Recovery::default().failures(21), "failures is 21"),
        (Recovery::default().ghosts(0), "ghosts is 0"),
        (Recovery::default().per_sweep(0), "per_sweep is 0"),
        (Recovery::default().every(Duration::ZERO), "every is 0ns"),
        (Recovery::default().every(400 * day), "every is"),
        (Recovery::default().sweep_every(Duration::ZERO), "sweep_every is 0ns"),
    ] {
        let error = recovery.check().unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}
