//! J14: what an older system brings.

use std::time::{Duration, SystemTime};

use redial_jobs::{
    FailureClass, Filter, ImportOptions, ImportSummary, Imported, JobRow, JobStore, NewJob, Origin, RecoveryStore,
    SqlOptions, SqlStore, State,
};

use crate::place::{Database, HOUR, LEASE, Place, claim_one, enqueue, job, recovery, sweep};

/// So many failures of as many targets, each tenth of which is DEAD.
fn many(count: u32) -> Vec<Imported> {
    let failed_at = SystemTime::now() - HOUR;
    let class = |n| if n % 10 == 0 { FailureClass::Business } else { FailureClass::Exhausted };
    let one = |n| Imported { job: job(&format!("old {n}")), failed_at, class: class(n), reason: "gave up".to_owned() };
    (0..count).map(one).collect()
}

/// All that are FAILED, in the order in which they came in.
async fn failed(place: &Place) -> Vec<JobRow> {
    let mut rows: Vec<JobRow> = Vec::new();
    loop {
        let before = rows.last().map(|row| row.id);
        let filter = Filter { state: Some(State::Failed), before, limit: Some(1000), ..Filter::default() };
        let page = place.store.list(&filter).await.unwrap();
        if page.is_empty() {
            rows.reverse();
            return rows;
        }
        rows.extend(page);
    }
}

pub async fn old_failures_come_in(place: &Place) {
    let now = SystemTime::now();
    let old = |target: &str, age: Duration, class| Imported {
        job: job(target),
        failed_at: now - age,
        class,
        reason: "gave up".to_owned(),
    };
    place.enqueue("known").await;
    let failures = [
        old("a", HOUR, FailureClass::Exhausted),
        old("b", 2 * HOUR, FailureClass::Unclassified),
        old("bad", HOUR, FailureClass::Business),
        old("ancient", 1000 * HOUR, FailureClass::Exhausted),
        old("known", HOUR, FailureClass::Exhausted),
    ];
    let options = ImportOptions { since: Some(now - 100 * HOUR), spread: 4 * HOUR, dry_run: true };
    let three = ImportSummary { failed: 2, dead: 1 };
    assert_eq!(place.store.import(&failures, &options).await.unwrap(), three);
    assert_eq!(place.store.stats().await.unwrap().count(State::Failed), 0);
    let options = ImportOptions { dry_run: false, ..options };
    assert_eq!(place.store.import(&failures, &options).await.unwrap(), three);
    assert_eq!(place.store.import(&failures, &options).await.unwrap().all(), 0, "twice is once");

    let rows = place.store.list(&Filter { state: Some(State::Failed), ..Filter::default() }).await.unwrap();
    let due: Vec<_> = rows.iter().map(|row| row.retry_at.unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert!(due[0].duration_since(due[1]).unwrap() >= HOUR / 2, "they fall due apart");
    assert!(rows.iter().all(|row| row.origin == Origin::Imported && row.finished_at.unwrap() < now - HOUR / 2));
    assert_eq!(place.store.stats().await.unwrap().count(State::Dead), 1);
    assert_eq!(sweep(&place.later(5 * HOUR)).await.recovered, 2);
}

/// The older system kept each failure; what is repaired is how the target stands.
pub async fn of_a_targets_old_failures_the_newest_comes_in(place: &Place) {
    let now = SystemTime::now();
    let old = |target: &str, age: u32, class| Imported {
        job: job(target),
        failed_at: now - HOUR * age,
        class,
        reason: format!("{age} hours ago"),
    };
    let failures = [
        old("given up since", 3, FailureClass::Exhausted),
        old("may be repaired", 1, FailureClass::Exhausted),
        old("given up since", 2, FailureClass::Business),
        old("may be repaired", 4, FailureClass::Business),
    ];
    let both = ImportSummary { failed: 1, dead: 1 };
    let options = ImportOptions { dry_run: true, ..ImportOptions::default() };
    assert_eq!(place.store.import(&failures, &options).await.unwrap(), both);
    assert_eq!(place.store.import(&failures, &ImportOptions::default()).await.unwrap(), both);
    let rows = place.store.list(&Filter::default()).await.unwrap();
    let mut told: Vec<_> = rows.iter().map(|row| (row.target.as_str(), row.state, row.error.as_deref())).collect();
    told.sort_unstable_by_key(|(target, ..)| *target);
    let expected =
        [("given up since", State::Dead, Some("2 hours ago")), ("may be repaired", State::Failed, Some("1 hours ago"))];
    assert_eq!(told, expected);
}

/// More than one statement takes: all the same they fall due evenly, each target once.
pub async fn many_old_failures_come_in_as_a_few_do(place: &Place) {
    place.enqueue("old 1001").await;
    let mut failures = many(2500);
    // An older word on the first one, far behind it.
    failures.push(Imported {
        failed_at: SystemTime::now() - 2 * HOUR,
        class: FailureClass::Exhausted,
        ..failures[0].clone()
    });
    let options = ImportOptions { spread: 25 * HOUR, dry_run: true, ..ImportOptions::default() };
    let all = ImportSummary { failed: 2249, dead: 250 };
    assert_eq!(place.store.import(&failures, &options).await.unwrap(), all);
    assert!(failed(place).await.is_empty());
    let options = ImportOptions { dry_run: false, ..options };
    assert_eq!(place.store.import(&failures, &options).await.unwrap(), all);
    assert_eq!(place.store.import(&failures, &options).await.unwrap().all(), 0, "twice is once");

    let rows = failed(place).await;
    assert_eq!((rows.len(), place.store.stats().await.unwrap().count(State::Dead)), (2249, 250));
    assert!(rows.windows(2).all(|two| two[0].retry_at <= two[1].retry_at), "in the order in which they were given");
    // The middle one is due when half the time is over, and the last one at its end.
    for (at, hours) in [(0, 0), (rows.len() / 2, 12), (rows.len() - 1, 24)] {
        let due = rows[at].retry_at.unwrap().duration_since(rows[0].created_at).unwrap();
        assert!((hours * HOUR..(hours + 1) * HOUR).contains(&due), "{at}: {due:?}");
    }
}

/// Renewals among them: what runs meanwhile is not lost.
pub async fn others_write_while_many_old_failures_come_in(place: &Place) {
    let mut ways = vec![(place.store.clone(), place.later(Duration::ZERO))];
    if let Database::Sqlite(_) = &place.database {
        let file = SqlStore::sqlite(place.path(), SqlOptions::new()).await.unwrap();
        ways = vec![(place.store.clone(), file.clone()), (file.clone(), place.store.clone()), (file.clone(), file)];
    }
    for (importing, other) in ways {
        place.enqueue("runs").await;
        let lease = claim_one(&place.store).await.lease;
        let failures = many(10_000);
        let options = ImportOptions::default();
        let mut import = Box::pin(importing.import(&failures, &options));
        let mut written = 0;
        let imported = loop {
            let write = async {
                let new = enqueue(&other, job(&format!("new {written}"))).await.is_new();
                (new, other.renew(&[lease], LEASE).await.unwrap())
            };
            tokio::select! {
                biased;
                imported = &mut import => break imported.unwrap(),
                (new, renewed) = write => {
                    assert!(new && renewed == [lease]);
                    written += 1;
                }
            }
        };
        assert_eq!(imported, ImportSummary { failed: 9000, dead: 1000 });
        assert!(written >= 3, "others had their turn {written} times");
        drop(import);
        place.empty().await;
    }
}

/// Something that refuses one target, as a database that fails half way does.
async fn refuse(place: &Place, target: Option<&str>) {
    let sql = match (&place.database, target) {
        (Database::Sqlite(_), Some(target)) => format!(
            "CREATE TRIGGER refuse BEFORE INSERT ON redial_jobs WHEN NEW.target = '{target}'
             BEGIN SELECT RAISE(ABORT, 'refused'); END"
        ),
        (Database::Sqlite(_), None) => "DROP TRIGGER refuse".to_owned(),
        (Database::Postgres(_), Some(target)) => {
            format!("ALTER TABLE {}.redial_jobs ADD CONSTRAINT refuse CHECK (target <> '{target}')", place.name)
        }
        (Database::Postgres(_), None) => format!("ALTER TABLE {}.redial_jobs DROP CONSTRAINT refuse", place.name),
    };
    let sql = sqlx::raw_sql(sqlx::AssertSqlSafe(sql));
    match &place.database {
        Database::Sqlite(pool) => sql.execute(pool).await.map(drop).unwrap(),
        Database::Postgres(pool) => sql.execute(pool).await.map(drop).unwrap(),
    }
}

/// What came in stays, and whoever runs it again has the rest.
pub async fn an_import_that_fails_half_way_is_run_again(place: &Place) {
    let (failures, options) = (many(3000), ImportOptions::default());
    refuse(place, Some("old 2500")).await;
    assert!(place.store.import(&failures, &options).await.unwrap_err().is_store());
    let stats = place.store.stats().await.unwrap();
    let came = ImportSummary { failed: stats.count(State::Failed), dead: stats.count(State::Dead) };
    assert!((1..2500).contains(&came.all()), "{came:?}");
    refuse(place, None).await;
    let rest = place.store.import(&failures, &options).await.unwrap();
    assert_eq!((came.failed + rest.failed, came.dead + rest.dead), (2700, 300));
}

/// It would else be the newest word on its provider for as long, whatever that has answered since.
pub async fn no_old_failure_is_of_tomorrow(place: &Place) {
    let of = |target: &str| NewJob::raw("mail", target, "{}").unwrap().provider("hub").unwrap();
    let tomorrow = SystemTime::now() + 24 * HOUR;
    let failures =
        [Imported { job: of("old"), failed_at: tomorrow, class: FailureClass::Exhausted, reason: "?".to_owned() }];
    let options = ImportOptions { spread: Duration::ZERO, ..ImportOptions::default() };
    assert_eq!(place.store.import(&failures, &options).await.unwrap().failed, 1);
    let failing = async || place.later(HOUR).candidates(&recovery()).await.unwrap().providers[0].failing;
    assert!(failing().await);
    enqueue(&place.store, of("new")).await;
    let claimed = claim_one(&place.store).await;
    assert_eq!(place.store.complete(&[claimed.lease]).await.unwrap(), [claimed.lease]);
    assert!(!failing().await, "it has answered since");
    let row = &failed(place).await[0];
    assert!(row.finished_at.unwrap() <= row.created_at && row.run_at <= row.created_at, "{row:?}");
}
