//! Two lines of defence, as a timeline: a bad minute in 5 seconds.
//!
//! Each night a model reads what four users have learned (an analysis), writes it down (a TIL), and commits it to their
//! repositories. Tonight the server with the repositories loses two answers and is down for half a minute. Retries of HTTP
//! repair what lasts seconds; jobs repair what lasts longer. Nothing is committed twice.
//!
//! Needs nothing: the server is its own, on loopback, and the jobs are in a SQLite file in the folder for temporary files.
//!
//! ```text
//! cargo run -p redial-jobs --example two_levels
//! ```

mod hub;
mod timeline;
mod work;

use std::{error::Error, time::Duration};

use redial_jobs::{Filter, JobStore, Jobs, Recovery, Runner, State};
use tokio::time::{Instant, sleep};
use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};

use hub::Hub;
use timeline::{Timeline, story};
use work::{Analyse, Clients, analyse, commit, write};

const USERS: [&str; 4] = ["bob", "ada", "cyd", "eve"];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let timeline = Timeline::new(start);
    tracing_subscriber::registry().with(timeline.clone()).init();
    let hub = Hub::start(timeline.clone()).await?;
    let folder = std::env::temp_dir().join(format!("two-levels-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let jobs = Jobs::sqlite(folder.join("jobs.db")).await?;

    timeline.title("A bad minute, in 5 seconds");
    let clients = Clients::new(hub.url(), jobs.clone())?;
    let recovery = Recovery::default().every(story(10)).jitter(story(1)).ghost_wait(story(1)).sweep_every(story(1));
    println!("   worst case of a target: {}\n", recovery.worst_case(&clients.hub.policy));
    let runner = Runner::new(jobs.clone())
        .on(analyse)
        .on(write)
        .on(commit)
        .share(clients)
        .recovery(recovery)
        .poll_every(Duration::from_millis(20))
        .every("nightly", Duration::from_secs(24 * 60 * 60), || async {
            Ok::<_, redial_jobs::BoxError>(USERS.map(|user| Analyse { user: user.to_owned() }).into())
        })
        .on_dead(|death| println!("   a person must look: {death:?}"));

    let store = jobs.store().clone();
    runner.run_until(until_all_is_committed(store.clone(), start)).await?;

    let rows = store.list(&Filter { limit: Some(1000), ..Filter::default() }).await?;
    let ended = |state| rows.iter().filter(|row| row.state == state).count();
    let (done, failed, dead) = (ended(State::Completed), ended(State::Failed), ended(State::Dead));
    timeline.title("What came of it");
    println!("   jobs     {done} COMPLETED, {failed} FAILED and repaired, {dead} DEAD");
    println!("   commits  {}", hub.commits());
    println!("   requests {}", hub.requests());
    drop((store, jobs));
    std::fs::remove_dir_all(&folder)?;

    let once = USERS.iter().all(|user| hub.commits_of(user) == 1);
    match once && done == 3 * USERS.len() && dead == 0 {
        true => Ok(()),
        false => Err("not all was done exactly once".into()),
    }
}

/// Ends when every user's TIL is committed, as far as the jobs know, or after twice the time.
async fn until_all_is_committed(store: impl JobStore, start: Instant) {
    let filter = Filter { state: Some(State::Completed), job_type: Some("commit".to_owned()), ..Filter::default() };
    while start.elapsed() < story(120) {
        if store.list(&filter).await.is_ok_and(|rows| rows.len() == USERS.len()) {
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
}
