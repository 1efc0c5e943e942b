//! The server: HTTP/1.1 and HTTP/2 on loopback, living by the script, and counting what was written twice.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{Instant, sleep},
};

use crate::day::{Fate, Phase, fate, share};

/// Which call a request belongs to.
pub const CALL: &str = "x-call";

#[derive(Clone)]
pub struct Server {
    pub url: String,
    seen: Arc<Mutex<Seen>>,
    seed: u64,
    start: Instant,
    day: Duration,
}

#[derive(Default)]
struct Seen {
    arrivals: HashMap<u64, u64>,
    /// How often each call without a key was carried out.
    writes: HashMap<u64, u64>,
}

impl Server {
    pub async fn start(seed: u64, start: Instant, day: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/orders", listener.local_addr()?);
        let server = Server { url, seen: Arc::default(), seed, start, day };
        let this = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(this.clone().serve(stream));
            }
        });
        Ok(server)
    }

    /// How many writes were carried out again, beyond the first time.
    pub fn duplicate_writes(&self) -> u64 {
        self.seen().writes.values().map(|times| times - 1).sum()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn phase(&self) -> Phase {
        Phase::at(self.start.elapsed(), self.day)
    }

    /// Ends when the outage begins.
    async fn until_outage(&self) {
        while self.phase() != Phase::Outage {
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn serve(self, stream: TcpStream) {
        // So that a connection that is dropped is reset, and not closed in good order.
        let _ = (stream.set_zero_linger(), stream.set_nodelay(true));
        if self.phase() == Phase::Outage {
            return;
        }
        let this = self.clone();
        let service = service_fn(move |request| {
            let this = this.clone();
            async move { this.answer(request).await }
        });
        let builder = auto::Builder::new(TokioExecutor::new());
        tokio::select! {
            _ = builder.serve_connection(TokioIo::new(stream), service) => {}
            () = self.until_outage() => {}
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, io::Error> {
        let call = request.headers().get(CALL).and_then(|call| call.to_str().ok()?.parse().ok()).unwrap_or_default();
        let unsafe_write = request.method() == Method::POST && !request.headers().contains_key("idempotency-key");
        let arrival = {
            let mut seen = self.seen();
            let arrivals = seen.arrivals.entry(call).or_default();
            *arrivals += 1;
            *arrivals
        };
        request.into_body().collect().await.map_err(io::Error::other)?;
        let work = || {
            if unsafe_write {
                *self.seen().writes.entry(call).or_default() += 1;
            }
        };
        let answer = |status| Response::builder().status(status).header("server", "a bad day");
        let response = match fate(self.phase(), share(self.start.elapsed(), self.day), self.seed, call, arrival) {
            Fate::Answer(after) => {
                work();
                sleep(after).await;
                answer(StatusCode::OK)
            }
            Fate::Fail { worked } => {
                if worked {
                    work();
                }
                answer(StatusCode::SERVICE_UNAVAILABLE)
            }
            Fate::WorkAndReset => {
                work();
                return Err(io::Error::other("reset"));
            }
            Fate::Throttle => answer(StatusCode::TOO_MANY_REQUESTS).header("retry-after", "1"),
            Fate::Gone => return Err(io::Error::other("gone")),
        };
        response.body(Empty::new()).map_err(io::Error::other)
    }
}
