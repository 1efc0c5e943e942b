//! Where jobs are enqueued.

use crate::{Enqueued, Error, Job, JobStore, NewJob};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::{SqlOptions, SqlPool, SqlStore, SqlTransaction};

/// Where jobs are enqueued. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Jobs<S> {
    store: S,
}

impl<S: JobStore> Jobs<S> {
    /// Over this store.
    pub fn new(store: S) -> Self {
        Self { store }
    }

    /// The store itself.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Enqueues this job, unless its type's [`Unique`](crate::Unique) forbids it: by default, while another one is active
    /// for its target (J6). Whatever runs concurrently, one of them gets in.
    ///
    /// # Errors
    ///
    /// The job cannot be stored ([`NewJob::of`]), or the store fails.
    pub async fn enqueue_if_absent<J: Job>(&self, job: &J) -> Result<Enqueued, Error> {
        let jobs = [NewJob::of(job)?];
        let enqueued = self.store.enqueue(&jobs).await?;
        enqueued.into_iter().next().ok_or_else(|| Error::store("enqueue", "it answered for no job"))
    }

    /// Enqueues these, each as [`enqueue_if_absent`](Self::enqueue_if_absent) does, in one transaction: the batch of a
    /// nightly run, say.
    ///
    /// # Errors
    ///
    /// One of them cannot be stored, or the store fails; none is enqueued.
    pub async fn enqueue_all<'j, J: Job>(&self, jobs: impl IntoIterator<Item = &'j J>) -> Result<Vec<Enqueued>, Error> {
        let jobs = jobs.into_iter().map(NewJob::of).collect::<Result<Vec<_>, _>>()?;
        self.store.enqueue(&jobs).await
    }

    /// Enqueues these where `every` has passed since the last time, by whichever instance: a nightly run on many machines.
    /// `None`: it is not due ([`JobStore::enqueue_every`]). The name, 1 to 100 bytes, stands for the interval in the table;
    /// those of [`Runner::every`](crate::Runner::every) and of our own ticks are apart from it.
    ///
    /// # Errors
    ///
    /// The name is empty, too long or has control characters, one of them cannot be stored, or the store fails; none is enqueued, and it is still due.
    pub async fn enqueue_every<'j, J: Job>(
        &self,
        name: &str,
        every: std::time::Duration,
        jobs: impl IntoIterator<Item = &'j J>,
    ) -> Result<Option<Vec<Enqueued>>, Error> {
        crate::enqueue::check("interval's name", name, 100)?;
        let jobs = jobs.into_iter().map(NewJob::of).collect::<Result<Vec<_>, _>>()?;
        self.store.enqueue_every(&format!("batch {name}"), every, &jobs).await
    }
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl Jobs<SqlStore> {
    /// In this file, in the table `redial_jobs`. Both are made where they are not there.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), redial_jobs::Error> {
    /// # use std::time::Duration;
    /// # use redial_jobs::{Job, Jobs};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct CommitTil { user: u64 }
    /// # impl Job for CommitTil {
    /// #     const TYPE: &'static str = "commit-til";
    /// #     const MAX_RUNTIME: Duration = Duration::from_secs(120);
    /// #     fn target(&self) -> String { format!("user {}", self.user) }
    /// # }
    /// let jobs = Jobs::sqlite(":memory:").await?;
    /// let first = jobs.enqueue_if_absent(&CommitTil { user: 7 }).await?;
    /// let second = jobs.enqueue_if_absent(&CommitTil { user: 7 }).await?;
    /// assert!(first.is_new() && !second.is_new());
    /// assert_eq!(second.id(), first.id());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As of [`SqlStore::sqlite`].
    #[cfg(feature = "sqlite")]
    pub async fn sqlite(path: impl AsRef<std::path::Path>) -> Result<Self, Error> {
        Ok(Self::new(SqlStore::sqlite(path, SqlOptions::new()).await?))
    }

    /// In this database, in the table `redial_jobs`, which [`migrate`](Self::migrate) makes.
    ///
    /// # Errors
    ///
    /// As of [`SqlStore::postgres`].
    #[cfg(feature = "postgres")]
    pub async fn postgres(url: &str) -> Result<Self, Error> {
        Ok(Self::new(SqlStore::postgres(url, SqlOptions::new()).await?))
    }

    /// In a pool of yours, in the table `redial_jobs`, which [`migrate`](Self::migrate) makes. For another table:
    /// [`SqlStore::from_pool`].
    ///
    /// # Errors
    ///
    /// None today: the options by default break no rule.
    pub fn from_pool(pool: impl Into<SqlPool>) -> Result<Self, Error> {
        Ok(Self::new(SqlStore::from_pool(pool, SqlOptions::new())?))
    }

    /// Makes the table, or brings it up to date: [`SqlStore::migrate`].
    ///
    /// # Errors
    ///
    /// As of [`SqlStore::migrate`].
    pub async fn migrate(&self) -> Result<(), Error> {
        self.store.migrate().await
    }

    /// Enqueues this job in a transaction of yours: it is there if and only if that commits
    /// ([`SqlStore::enqueue_in`]).
    ///
    /// # Errors
    ///
    /// The job cannot be stored, or the transaction is one of another database, or fails.
    pub async fn enqueue_in<'t, J: Job>(&self, tx: impl Into<SqlTransaction<'t>>, job: &J) -> Result<Enqueued, Error> {
        self.store.enqueue_in(tx, &NewJob::of(job)?).await
    }
}
