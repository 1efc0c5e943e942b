//! The work: what is done, for whom, and how one looks whether it is done.

use std::{error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use redial::{
    AnswerBody, AttemptBody, Backoff, RetryLayer, StandardPolicy, Timeouts, Transient, policy::AnswerRule, retry::Retry,
};
use redial_jobs::{BoxError, Job, JobContext, JobError, Jobs, SqlStore, Verified, VerifyContext};
use serde::{Deserialize, Serialize};
use tower::{Layer, ServiceExt};

use crate::timeline::story;

/// A model reads what the user has learned.
#[derive(Serialize, Deserialize)]
pub struct Analyse {
    pub user: String,
}

/// A model writes it down.
#[derive(Serialize, Deserialize)]
pub struct Write {
    pub user: String,
}

/// It is committed to the user's repository.
#[derive(Serialize, Deserialize)]
pub struct Commit {
    pub user: String,
}

impl Job for Analyse {
    const TYPE: &'static str = "analyse";
    const MAX_RUNTIME: Duration = story(60);
    const PROVIDER: Option<&'static str> = Some("model");

    fn target(&self) -> String {
        self.user.clone()
    }
}

impl Job for Write {
    const TYPE: &'static str = "write";
    const MAX_RUNTIME: Duration = story(60);
    const PROVIDER: Option<&'static str> = Some("model");

    fn target(&self) -> String {
        self.user.clone()
    }
}

impl Job for Commit {
    const TYPE: &'static str = "commit";
    const MAX_RUNTIME: Duration = story(60);
    const PROVIDER: Option<&'static str> = Some("hub");

    fn target(&self) -> String {
        self.user.clone()
    }

    async fn verify(&self, cx: &VerifyContext) -> Result<Verified, BoxError> {
        let clients = cx.get::<Clients>().ok_or("the runner shares no clients")?;
        let response = clients.hub.call(Method::GET, &file(&self.user), None).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(Verified::NotDone);
        }
        JobError::of_answer(&response)?;
        Ok(Verified::Done)
    }
}

fn file(user: &str) -> String {
    format!("/repos/{user}/contents/til.md")
}

pub async fn analyse(job: Analyse, cx: JobContext) -> Result<(), JobError> {
    let clients = clients(&cx)?;
    let response = clients.model.call(Method::POST, &format!("/analyses/{}", job.user), Some(&cx)).await?;
    JobError::of_answer(&response)?;
    clients.jobs.enqueue_if_absent(&Write { user: job.user }).await?;
    Ok(())
}

pub async fn write(job: Write, cx: JobContext) -> Result<(), JobError> {
    let clients = clients(&cx)?;
    let response = clients.model.call(Method::POST, &format!("/texts/{}", job.user), Some(&cx)).await?;
    JobError::of_answer(&response)?;
    clients.jobs.enqueue_if_absent(&Commit { user: job.user }).await?;
    Ok(())
}

pub async fn commit(job: Commit, cx: JobContext) -> Result<(), JobError> {
    let response = clients(&cx)?.hub.call(Method::PUT, &file(&job.user), Some(&cx)).await?;
    JobError::of_answer(&response)
}

fn clients(cx: &JobContext) -> Result<&Clients, JobError> {
    cx.get().ok_or_else(|| JobError::transient("the runner shares no clients"))
}

/// What handlers share.
#[derive(Clone)]
pub struct Clients {
    pub model: Api,
    pub hub: Api,
    jobs: Jobs<SqlStore>,
}

impl Clients {
    pub fn new(url: &str, jobs: Jobs<SqlStore>) -> Result<Self, Box<dyn Error>> {
        let backoff = || Backoff::exponential(story(1)).max(story(4));
        let patient = Timeouts { attempt: story(15), total: story(40) };
        let model = StandardPolicy::builder("model", patient, Transient::usual()).backoff(backoff());
        let brisk = Timeouts { attempt: story(3), total: story(20) };
        let hub = StandardPolicy::builder("hub", brisk, Transient::usual())
            .backoff(backoff())
            // A repeat's 409 may mean that the first attempt worked.
            .answer(AnswerRule::verify().status([409]).after_unknown());
        Ok(Self { model: Api::new(url, model.build()?), hub: Api::new(url, hub.build()?), jobs })
    }
}

/// A provider's client.
#[derive(Clone)]
pub struct Api {
    url: Arc<str>,
    pub policy: StandardPolicy,
    http: Retry<Client<HttpConnector, AttemptBody<Full<Bytes>>>, StandardPolicy>,
}

impl Api {
    fn new(url: &str, policy: StandardPolicy) -> Self {
        let http = RetryLayer::new(policy.clone()).layer(Client::builder(TokioExecutor::new()).build_http());
        Self { url: url.into(), policy, http }
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        cx: Option<&JobContext>,
    ) -> Result<Response<AnswerBody<Incoming>>, redial::Error> {
        let mut request = Request::new(Full::new(Bytes::from_static(b"what was learned")));
        *request.method_mut() = method;
        // Our own server's address and our own names.
        *request.uri_mut() = format!("{}{path}", self.url).parse().unwrap_or_default();
        if let Some(cx) = cx {
            request.headers_mut().insert("idempotency-key", cx.key("call"));
            request.extensions_mut().insert(cx.deadline());
        }
        self.http.clone().oneshot(request).await
    }
}
