//! A worker that fails, hangs and comes back, until it is killed.

use std::time::Duration;

use rand::RngExt;
use redial_jobs::{Claim, Claimed, Failure, FailureClass, JobStore, Kind, SqlStore};

use crate::{database::Database, recovery};

pub const TYPE: &str = "stress";
/// What it prints when it comes back and is refused.
pub const REFUSED: &str = "refused";

const LEASE: Duration = Duration::from_millis(300);
/// How long it is away when it hangs: longer than its lease.
pub const ABSENCE: Duration = Duration::from_millis(700);

pub fn run(database: &Database) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work(database));
}

async fn work(database: &Database) {
    let store = database.open_to_work().await;
    let kinds = [Kind::named(TYPE)];
    let worker = format!("worker {}", std::process::id());
    let wanted = Claim { kinds: &kinds, worker: &worker, lease: LEASE, max: 4 };
    loop {
        let claimed = store.claim(&wanted).await.unwrap_or_else(|error| panic!("a claim failed: {error}"));
        if claimed.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for job in claimed {
            run_one(&store, job).await;
        }
    }
}

async fn run_one(store: &SqlStore, job: Claimed) {
    match rand::rng().random_range(0..10) {
        0..5 => {
            store.complete(&[job.lease]).await.unwrap();
        }
        5..8 => {
            let failure = Failure::new(FailureClass::Exhausted, "503 after 3 attempts");
            let _ = store.fail(job.lease, &failure, &recovery()).await.unwrap();
        }
        _ => {
            let store = store.clone();
            tokio::spawn(async move {
                tokio::time::sleep(ABSENCE).await;
                if store.complete(&[job.lease]).await.unwrap().is_empty() {
                    println!("{REFUSED}");
                }
            });
        }
    }
}
