//! Where jobs are enqueued.

use crate::{Enqueued, Error, Job, JobStore, NewJob};

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
}
