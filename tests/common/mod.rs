//! Scripted servers on loopback, for tests that must know what arrived.
//!
//! A server takes one script per connection (the last one serves all that follow), counts what it saw, and ends with its
//! guard. [`raw_h1`] speaks byte by byte, [`raw_h2`] frame by frame.
#![allow(dead_code, reason = "each test target uses its part")]

pub mod raw_h1;
pub mod raw_h2;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Nothing here takes this long, unless it hangs.
pub const TOO_LONG: Duration = Duration::from_secs(20);

/// What a server saw, over all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Connections accepted.
    pub connections: usize,
    /// Requests that reached it: full heads on HTTP/1.1, `HEADERS` frames on HTTP/2.
    pub requests: usize,
    /// Bytes of request bodies, without framing.
    pub body_bytes: usize,
    /// Pings answered (HTTP/2): all that was sent before the ping has been processed.
    pub pongs: usize,
    /// Connections that have ended.
    pub ended: usize,
}

/// The counts of a running server, shared by its connections.
#[derive(Clone)]
pub struct Tally(Arc<watch::Sender<Seen>>);

impl Tally {
    pub fn add(&self, change: impl FnOnce(&mut Seen)) {
        self.0.send_modify(change);
    }
}

/// A running server; dropping it closes the port and every connection.
pub struct Server {
    addr: SocketAddr,
    seen: watch::Receiver<Seen>,
    acceptor: JoinHandle<()>,
}

impl Server {
    /// Serves each connection, given its number from 0, with `serve`.
    pub async fn start<F, S>(serve: F) -> Server
    where
        F: Fn(TcpStream, usize, Tally) -> S + Send + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (sender, seen) = watch::channel(Seen::default());
        let tally = Tally(Arc::new(sender));
        let acceptor = tokio::spawn(async move {
            // Dropped with this task, and with it every connection.
            let mut connections = JoinSet::new();
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                tally.add(|seen| seen.connections += 1);
                let (serving, tally) = (serve(stream, number, tally.clone()), tally.clone());
                connections.spawn(async move {
                    serving.await;
                    tally.add(|seen| seen.ended += 1);
                });
            }
        });
        Server { addr, seen, acceptor }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}/x", self.addr)
    }

    pub fn seen(&self) -> Seen {
        *self.seen.borrow()
    }

    /// Waits until the server has seen enough.
    pub async fn until(&self, enough: impl FnMut(&Seen) -> bool) {
        let mut seen = self.seen.clone();
        tokio::time::timeout(TOO_LONG, seen.wait_for(enough))
            .await
            .unwrap_or_else(|_| panic!("the server saw only {:?}", self.seen()))
            .unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

/// The script for this connection: the last one serves all that follow.
fn pick<S: Clone + Default>(scripts: &[S], number: usize) -> S {
    scripts.get(number).or(scripts.last()).cloned().unwrap_or_default()
}

/// Ends a connection in order: says so, then takes what is still on the way. Closing over unread bytes would reset it.
async fn close(stream: &mut TcpStream) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let _ = stream.shutdown().await;
    let mut sink = [0; 4096];
    while matches!(stream.read(&mut sink).await, Ok(1..)) {}
}

/// Ends a connection with a TCP reset, whatever is still on the way.
fn reset(stream: &TcpStream) {
    let _ = stream.set_zero_linger();
}
