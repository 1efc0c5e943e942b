//! What is said and counted: one ERROR for a job that becomes DEAD, and none before.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use metrics_exporter_prometheus::PrometheusBuilder;
use redial_jobs::{
    BoxError, FailureClass, ImportOptions, ImportSummary, Imported, Job, JobContext, JobError, JobStore, Jobs, NewJob,
    Recovery, Runner, SqlStore, State, Sweeper,
};
use serde::{Deserialize, Serialize};
use tracing::{
    Dispatch, Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::{DefaultGuard, NoSubscriber},
};

#[derive(Serialize, Deserialize)]
struct Mail {
    to: String,
}

impl Job for Mail {
    const TYPE: &'static str = "mail";
    const MAX_RUNTIME: Duration = Duration::from_secs(10);

    fn target(&self) -> String {
        self.to.clone()
    }
}

/// An event under our target: its level, message and other fields.
#[derive(Clone, Debug)]
struct Said {
    level: Level,
    fields: BTreeMap<&'static str, String>,
}

impl Said {
    fn get(&self, field: &str) -> &str {
        self.fields.get(field).map_or("", String::as_str)
    }
}

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// Listens on this thread.
#[derive(Clone, Default)]
struct Listener {
    said: Arc<Mutex<Vec<Said>>>,
    spans: Arc<Mutex<Vec<BTreeMap<&'static str, String>>>>,
    next: Arc<AtomicU64>,
}

impl Listener {
    /// Begins to listen on this thread, for as long as the guard lives.
    fn begin(&self) -> DefaultGuard {
        // With one subscriber alone, `tracing` asks that of whichever thread meets an event first, and remembers the answer
        // for all threads. So there is always a second one, which nobody uses.
        static ANOTHER: OnceLock<Dispatch> = OnceLock::new();
        ANOTHER.get_or_init(|| Dispatch::new(NoSubscriber::new()));
        tracing::subscriber::set_default(self.clone())
    }

    fn all(&self) -> Vec<Said> {
        self.said.lock().unwrap().clone()
    }

    fn at(&self, level: Level) -> Vec<Said> {
        self.all().into_iter().filter(|said| said.level == level).collect()
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "redial_jobs"
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        let mut fields = BTreeMap::new();
        attributes.record(&mut Fields(&mut fields));
        self.spans.lock().unwrap().push(fields);
        span::Id::from_u64(self.next.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        self.said.lock().unwrap().push(Said { level: *event.metadata().level(), fields });
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

fn quick() -> Recovery {
    let tick = Duration::from_millis(10);
    Recovery::default().every(Duration::from_millis(1)).jitter(Duration::ZERO).sweep_every(tick).ghost_wait(tick)
}

/// Runs until so many jobs are in this state.
async fn run(jobs: &Jobs<SqlStore>, runner: Runner<SqlStore>, state: State, count: u64) {
    let store = jobs.store().clone();
    let enough = async {
        while store.stats().await.unwrap().count(state) < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    runner.poll_every(Duration::from_millis(5)).run_until(enough).await.unwrap();
}

// On one thread, where the listener and the recorder are.
#[tokio::test]
async fn one_error_when_a_job_becomes_dead_and_none_before() {
    let listener = Listener::default();
    let _listening = listener.begin();
    let jobs = Jobs::sqlite(":memory:").await.unwrap();
    jobs.enqueue_if_absent(&Mail { to: "ada".into() }).await.unwrap();
    let runner = Runner::new(jobs.clone())
        .recovery(quick())
        .on(|_: Mail, _: JobContext| async { Err(JobError::transient("503 from https://hub.example/?token=s3cret")) });
    run(&jobs, runner, State::Dead, 1).await;

    let errors = listener.at(Level::ERROR);
    assert_eq!(errors.len(), 1, "{errors:?}");
    let error = &errors[0];
    assert_eq!(error.get("message"), "a job is DEAD: a person must look");
    assert_eq!((error.get("job_type"), error.get("job_target")), ("mail", "ada"));
    assert_eq!((error.get("reason"), error.get("class"), error.get("failures")), ("failures", "exhausted", "3"));
    assert_eq!((error.get("attempt"), error.get("root")), ("3", "1"));
    let warnings: Vec<_> = listener.at(Level::WARN).iter().map(|said| said.get("failures").to_owned()).collect();
    assert_eq!(warnings, ["1", "2"], "{:?}", listener.at(Level::WARN));
    assert!(!format!("{:?}", listener.all()).contains("s3cret"));
}

#[tokio::test]
async fn a_sweep_that_gives_a_target_up_says_so_once() {
    let listener = Listener::default();
    let _listening = listener.begin();
    let jobs = Jobs::sqlite(":memory:").await.unwrap();
    jobs.enqueue_if_absent(&Mail { to: "ada".into() }).await.unwrap();
    let kinds = [redial_jobs::Kind::of::<Mail>()];
    let claim = redial_jobs::Claim { kinds: &kinds, worker: "w", lease: Duration::from_millis(1), max: 1 };
    assert_eq!(jobs.store().claim(&claim).await.unwrap().len(), 1);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let sweeper = Sweeper::new(jobs.store().clone(), quick().ghosts(1)).unwrap();
    assert_eq!(sweeper.run_once().await.unwrap().buried.len(), 1);
    sweeper.run_once().await.unwrap();
    let errors = listener.at(Level::ERROR);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!((errors[0].get("reason"), errors[0].get("job_target")), ("ghosts", "ada"));
}

/// One ERROR for all that an import brings in as DEAD: whoever imports a thousand is not called a thousand times.
#[tokio::test]
async fn an_import_that_brings_in_the_dead_says_so_once() {
    let listener = Listener::default();
    let _listening = listener.begin();
    let jobs = Jobs::sqlite(":memory:").await.unwrap();
    let failure = |to: &str, class| Imported {
        job: NewJob::of(&Mail { to: to.into() }).unwrap(),
        failed_at: SystemTime::now(),
        class,
        reason: "gave up".to_owned(),
    };
    let failures = [
        failure("ada", FailureClass::Exhausted),
        failure("bob", FailureClass::Business),
        failure("cyd", FailureClass::Business),
    ];
    let import = async |dry_run, failures: &[Imported]| {
        let options = ImportOptions { dry_run, ..ImportOptions::default() };
        jobs.store().import(failures, &options).await.unwrap()
    };
    assert_eq!(import(true, &failures).await, ImportSummary { failed: 1, dead: 2 });
    import(false, &failures[..1]).await;
    assert!(listener.at(Level::ERROR).is_empty(), "nothing is DEAD yet");
    assert_eq!(import(false, &failures).await, ImportSummary { failed: 0, dead: 2 });
    import(false, &failures).await;
    let errors = listener.at(Level::ERROR);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].get("message"), "jobs were imported as DEAD: a person must look");
    assert_eq!(errors[0].get("count"), "2");
}

/// Whoever runs it again has only the rest, so that those that came in before it failed are told of now.
#[tokio::test]
async fn an_import_that_fails_half_way_tells_of_its_dead() {
    let listener = Listener::default();
    let _listening = listener.begin();
    let path = std::env::temp_dir().join(format!("redial-jobs-half-way-{}.db", std::process::id()));
    let jobs = Jobs::sqlite(&path).await.unwrap();
    let pool = sqlx::SqlitePool::connect_with(sqlx::sqlite::SqliteConnectOptions::new().filename(&path)).await.unwrap();
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON redial_jobs WHEN NEW.target = 'user 1500'
        BEGIN SELECT RAISE(ABORT, 'refused'); END";
    sqlx::raw_sql(refuse).execute(&pool).await.unwrap();
    let failure = |user| Imported {
        job: NewJob::of(&Mail { to: format!("user {user}") }).unwrap(),
        failed_at: SystemTime::now(),
        class: FailureClass::Business,
        reason: "gave up".to_owned(),
    };
    let failures: Vec<_> = (0..2000).map(failure).collect();
    assert!(jobs.store().import(&failures, &ImportOptions::default()).await.unwrap_err().is_store());
    let came = jobs.store().stats().await.unwrap().count(State::Dead);
    assert!((1..1500).contains(&came), "{came}");
    let errors = listener.at(Level::ERROR);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].get("count"), came.to_string());
    pool.close().await;
    drop(jobs);
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
}

#[tokio::test]
async fn success_is_quiet_and_after_recovery_it_is_told() {
    let listener = Listener::default();
    let _listening = listener.begin();
    let jobs = Jobs::sqlite(":memory:").await.unwrap();
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let job = |to: &str| NewJob::of(&Mail { to: to.into() }).unwrap().trace(trace);
    jobs.store().enqueue(&[job("ada"), job("bob")]).await.unwrap();
    let runner = Runner::new(jobs.clone()).recovery(quick()).on(move |mail: Mail, cx: JobContext| {
        assert_eq!(cx.trace(), Some(trace));
        let fails = mail.to == "bob" && cx.attempt() == 1;
        async move { if fails { Err("no luck") } else { Ok(()) } }
    });
    run(&jobs, runner, State::Completed, 2).await;
    assert!(listener.at(Level::ERROR).is_empty());
    let told = listener.at(Level::INFO);
    let told: Vec<_> = told.iter().filter(|said| said.get("message") == "a job is done after recovery").collect();
    assert_eq!(told.len(), 1, "{:?}", listener.all());
    assert_eq!((told[0].get("job_target"), told[0].get("attempt")), ("bob", "2"));
    // What a handler logs can be told by job, and joined to the trace of whoever enqueued it.
    let spans = listener.spans.lock().unwrap();
    // Three runs, and a look before the repeat.
    assert_eq!(spans.len(), 4);
    assert!(spans.iter().all(|span| span["trace"] == trace && span["job_type"] == "mail"), "{spans:?}");
}

#[tokio::test]
async fn a_page_of_prometheus() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let page = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    redial_jobs::metrics::describe();
    let jobs = Jobs::sqlite(":memory:").await.unwrap();
    for to in ["ada", "bob", "cyd"] {
        jobs.enqueue_if_absent(&Mail { to: to.into() }).await.unwrap();
    }
    let runner = Runner::new(jobs.clone()).recovery(quick()).on(|mail: Mail, cx: JobContext| async move {
        match mail.to.as_str() {
            "bob" if cx.attempt() == 1 => Err(JobError::transient("503")),
            "cyd" => Err(JobError::business("the mailbox is gone")),
            _ => Ok::<_, JobError>(()),
        }
    });
    run(&jobs, runner.name("w"), State::Completed, 2).await;
    // The gauges are read once a sweep.
    let idle = Runner::new(jobs.clone()).recovery(quick()).on(|_: Mail, _: JobContext| async { Ok::<_, BoxError>(()) });
    idle.run_until(tokio::time::sleep(Duration::from_millis(200))).await.unwrap();
    let page = page.render();
    for line in [
        "# TYPE redial_jobs_ended_total counter",
        r#"redial_jobs_ended_total{type="mail",outcome="completed",class=""} 2"#,
        r#"redial_jobs_ended_total{type="mail",outcome="failed",class="exhausted"} 1"#,
        r#"redial_jobs_ended_total{type="mail",outcome="dead",class="business"} 1"#,
        "redial_jobs_recovered_total 1",
        "redial_jobs_dead 1",
        "redial_jobs_ghosts 0",
        "redial_jobs_oldest_pending_seconds 0",
        r#"redial_jobs_run_seconds_count{type="mail"} 4"#,
        "# HELP redial_jobs_dead Jobs that are DEAD: a person must look",
    ] {
        assert!(page.contains(line), "{line}\n---\n{page}");
    }
}
