//! Workers are woken when there is something to do.

use tokio::sync::watch;

use crate::Wakes;

use super::{SqlStore, db::Db};

/// Tells the workers of this process, and in PostgreSQL hears what other processes tell.
pub(super) struct Waker {
    count: watch::Sender<u64>,
    channel: String,
    #[cfg(feature = "postgres")]
    listener: std::sync::Mutex<Option<tokio::task::JoinHandle<()>>>,
}

impl Waker {
    pub(super) fn new(channel: String) -> Self {
        Self {
            count: watch::Sender::new(0),
            channel,
            #[cfg(feature = "postgres")]
            listener: std::sync::Mutex::new(None),
        }
    }

    pub(super) fn wake(&self) {
        self.count.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    /// Starts to listen, where nobody does so yet.
    #[cfg(feature = "postgres")]
    fn listen(&self, pool: &sqlx::PgPool) {
        let mut listener = self.listener.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if listener.as_ref().is_none_or(tokio::task::JoinHandle::is_finished) {
            *listener = Some(tokio::spawn(listen(pool.clone(), self.channel.clone(), self.count.clone())));
        }
    }
}

#[cfg(feature = "postgres")]
impl Drop for Waker {
    fn drop(&mut self) {
        let listener = self.listener.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(listener) = listener.take() {
            listener.abort();
        }
    }
}

/// What was told while the connection was away is lost, so that each new connection wakes once.
#[cfg(feature = "postgres")]
async fn listen(pool: sqlx::PgPool, channel: String, count: watch::Sender<u64>) {
    const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);
    loop {
        if let Ok(mut listener) = sqlx::postgres::PgListener::connect_with(&pool).await
            && listener.listen(&channel).await.is_ok()
        {
            loop {
                count.send_modify(|count| *count = count.wrapping_add(1));
                // `None`: the connection was lost, and is made again by the next turn.
                if listener.try_recv().await.is_err() {
                    break;
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl SqlStore {
    pub(super) fn wakes_of(&self) -> Wakes {
        // Before anything is told.
        let wakes = Wakes::of(self.0.waker.count.subscribe());
        match &self.0.db {
            #[cfg(feature = "sqlite")]
            Db::File(_) | Db::Sqlite(_) => {}
            #[cfg(feature = "postgres")]
            // A listener keeps its connection: of the only one it would leave none for the work.
            Db::Postgres(pool) if pool.options().get_max_connections() < 2 => {}
            #[cfg(feature = "postgres")]
            Db::Postgres(pool) => self.0.waker.listen(pool),
        }
        wakes
    }

    /// Tells the workers of this process that there is something to do: after the commit of a transaction of yours that
    /// enqueued jobs. Without it they find them at their next look; in PostgreSQL the database tells them.
    pub fn wake(&self) {
        self.0.waker.wake();
    }
}
