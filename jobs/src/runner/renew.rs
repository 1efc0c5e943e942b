//! Renews what is held, in a task of its own: a handler that blocks its thread does not keep it from that.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout};

use super::hold::Holds;
use crate::{JobStore, observe};

/// How many leases one statement renews.
const CHUNK: usize = 500;

/// Renews every third of a lease, and more often while the database does not answer.
pub(super) async fn renew<S: JobStore>(store: S, holds: Arc<Holds>, lease: Duration) {
    let (every, again) = (lease / 3, lease / 12);
    let mut wait = every;
    loop {
        sleep(wait).await;
        wait = every;
        for chunk in holds.renewable().chunks(CHUNK) {
            let sent = Instant::now();
            match timeout(every, store.renew(chunk, lease)).await {
                Ok(Ok(granted)) => {
                    for lost in holds.renewed(chunk, &granted, sent, lease) {
                        observe::lease_lost(lost.id);
                    }
                }
                Ok(Err(error)) => {
                    observe::store_failed("renew", 1, &error);
                    wait = again;
                }
                Err(_) => {
                    observe::renewal_hangs(every);
                    wait = again;
                }
            }
        }
    }
}
