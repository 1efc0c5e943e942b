//! The server: a model, which works, and repositories, which have a bad minute.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    future::pending,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, sync::watch, time::sleep};

use crate::timeline::{Timeline, story};

/// For how long the repositories are away, in seconds of the story.
const OUTAGE: u64 = 20;

#[derive(Clone)]
pub struct Hub {
    url: Arc<str>,
    timeline: Timeline,
    seen: Arc<Mutex<Seen>>,
    /// Bob's part of the story is told.
    bob_is_done: watch::Sender<bool>,
}

#[derive(Default)]
struct Seen {
    down: bool,
    /// How often each user's file was committed.
    commits: BTreeMap<String, u32>,
    requests: u32,
    refused: u32,
}

impl Hub {
    pub async fn start(timeline: Timeline) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?).into();
        let hub = Hub { url, timeline, seen: Arc::default(), bob_is_done: watch::Sender::new(false) };
        let this = hub.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let this = this.clone();
                let service = service_fn(move |request| {
                    let this = this.clone();
                    async move { this.answer(request).await }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(hub)
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn commits_of(&self, user: &str) -> u32 {
        self.seen().commits.get(user).copied().unwrap_or(0)
    }

    pub fn commits(&self) -> String {
        let times: Vec<_> = self.seen().commits.iter().map(|(user, times)| format!("{user} {times}")).collect();
        times.join(", ")
    }

    pub fn requests(&self) -> String {
        let seen = self.seen();
        format!("{}, {} of them while the repositories were down", seen.requests, seen.refused)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        self.seen().requests += 1;
        let path: Vec<&str> = request.uri().path().split('/').skip(1).collect();
        let status = match (request.method(), &path[..]) {
            (&Method::POST, ["analyses", user]) => {
                self.think_about(user).await;
                StatusCode::CREATED
            }
            (&Method::POST, ["texts", _]) => {
                sleep(story(1)).await;
                StatusCode::CREATED
            }
            (_, ["repos", ..]) if self.seen().down => {
                self.seen().refused += 1;
                StatusCode::SERVICE_UNAVAILABLE
            }
            (&Method::GET, ["repos", user, ..]) => match self.commits_of(user) {
                0 => StatusCode::NOT_FOUND,
                _ => StatusCode::OK,
            },
            (&Method::PUT, ["repos", user, ..]) => self.commit(user).await,
            _ => StatusCode::NOT_FOUND,
        };
        let mut response = Response::new(Full::default());
        *response.status_mut() = status;
        Ok(response)
    }

    /// As GitHub does without the file's `sha`: what is there is not written again.
    async fn commit(&self, user: &str) -> StatusCode {
        if self.commits_of(user) > 0 {
            self.timeline.say("server", user, "409: the file is there already");
            self.bob_is_done.send_replace(true);
            return StatusCode::CONFLICT;
        }
        sleep(story(1) / 2).await;
        *self.seen().commits.entry(user.to_owned()).or_insert(0) += 1;
        match user {
            "bob" => {
                self.timeline.say("server", user, "committed, and the answer is lost");
                pending().await
            }
            "ada" => {
                self.timeline.say("server", user, &format!("committed, the answer is lost, and DOWN for {OUTAGE} s"));
                self.seen().down = true;
                let this = self.clone();
                tokio::spawn(async move {
                    sleep(story(OUTAGE)).await;
                    this.seen().down = false;
                    this.timeline.say("server", "", "UP again");
                });
                pending().await
            }
            _ => {
                self.timeline.say("server", user, "committed");
                StatusCode::CREATED
            }
        }
    }

    /// Longer about some than about others: one part of the story after the other.
    async fn think_about(&self, user: &str) {
        sleep(story(1) / 2).await;
        if user != "bob" {
            // We hold the sender.
            let _ = self.bob_is_done.subscribe().wait_for(|done| *done).await;
        }
        if user != "ada" {
            sleep(story(1) / 2).await;
        }
    }
}
