//! Servers on loopback.

use std::{
    fmt,
    future::Future,
    io,
    net::{Ipv4Addr, SocketAddr},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

use super::{
    Seen, http1, http2,
    record::Record,
    reply::Reply,
    script::{Player, Script},
};

/// A server on a free port of 127.0.0.1, for as long as this guard lives: dropping it closes the port and every
/// connection.
///
/// It needs a tokio runtime with I/O, running on real time: under a paused clock, which jumps ahead whenever nothing
/// but the network is waited for, use a [`service`](super::service).
#[derive(Debug)]
#[must_use = "the server ends when this is dropped"]
pub struct Server {
    addr: SocketAddr,
    record: Record,
    port: Port,
}

#[derive(Debug)]
enum Port {
    Serving(JoinHandle<()>),
    /// Bound, so that nobody else takes it, and not listening.
    Refusing {
        _socket: socket2::Socket,
    },
}

impl Server {
    /// Plays a script over HTTP/1.1.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, where no port is free, and on a reply that HTTP/1.1 cannot express.
    #[track_caller]
    pub fn http1(script: impl Into<Script>) -> Self {
        let script = script.into();
        script.check("HTTP/1.1", Reply::is_of_http1);
        let player = Player::new(script);
        Self::start(move |stream, number, record| http1::run(stream, number, player.clone(), record))
    }

    /// Plays a script over HTTP/2 without TLS, for clients that begin with it ("prior knowledge").
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, where no port is free, and on a reply that only a [`service`](super::service) can play.
    #[track_caller]
    pub fn http2(script: impl Into<Script>) -> Self {
        let script = script.into();
        script.check("a socket", Reply::is_of_sockets);
        let player = Player::new(script);
        Self::start(move |stream, number, record| http2::run(stream, number, player.clone(), record))
    }

    /// Accepts every connection, reads, and never says a word, whatever is spoken there. The client sees its own
    /// timeout, or none; with TLS, its connect timeout.
    #[track_caller]
    pub fn silent() -> Self {
        Self::start(|mut stream, _, _| async move { drain(&mut stream).await })
    }

    /// Answers the first word of a TLS handshake with the alert `handshake_failure`, and closes. The client sees
    /// `tls`, unsent and permanent.
    #[track_caller]
    pub fn tls_refused() -> Self {
        // TLS 1.2's record of an alert: fatal, handshake_failure (RFC 8446, 6).
        const ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 40];
        Self::start(|mut stream, _, _| async move {
            stream.read_exact(&mut [0; 5]).await?;
            stream.write_all(&ALERT).await?;
            close(&mut stream).await
        })
    }

    /// A port that refuses connections. It is bound, so that nobody else takes it meanwhile, but not listened on. The
    /// client sees `connect`, unsent. Needs no runtime.
    #[track_caller]
    pub fn refusing() -> Self {
        let bound = || -> io::Result<_> {
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
            socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
            let addr = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
            Ok((socket, addr))
        };
        match bound() {
            Ok((socket, addr)) => Server { addr, record: Record::new(), port: Port::Refusing { _socket: socket } },
            Err(error) => panic!("no port of 127.0.0.1 could be bound: {error}"),
        }
    }

    /// Serves each connection, given its number from 1.
    #[track_caller]
    fn start<F, S>(serve: F) -> Self
    where
        F: Fn(TcpStream, usize, Record) -> S + Send + 'static,
        S: Future<Output = io::Result<()>> + Send + 'static,
    {
        let bound = || -> io::Result<_> {
            let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, TcpListener::from_std(listener)?))
        };
        let (addr, listener) = match bound() {
            Ok(bound) => bound,
            Err(error) => panic!("no port of 127.0.0.1 could be listened on: {error}"),
        };
        let record = Record::new();
        let port = Port::Serving(tokio::spawn(accept(listener, record.clone(), serve)));
        Server { addr, record, port }
    }

    /// Its address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of a path on it: `http://127.0.0.1:port/path`.
    pub fn url(&self, path: &str) -> String {
        self.url_with("http", path)
    }

    /// The same with another scheme, such as `https`.
    pub fn url_with(&self, scheme: &str, path: &str) -> String {
        format!("{scheme}://{}/{}", self.addr, path.strip_prefix('/').unwrap_or(path))
    }

    /// What it has seen so far.
    pub fn seen(&self) -> Seen {
        self.record.seen()
    }

    /// Waits until it has seen enough, and says what.
    ///
    /// # Panics
    ///
    /// With what it did see, after 20 s in vain.
    pub async fn until(&self, enough: impl FnMut(&Seen) -> bool) -> Seen {
        self.record.until(enough).await
    }

    /// Ends now, and not some time after the guard was dropped: afterwards the port is free and every connection
    /// closed.
    pub async fn stop(mut self) -> Seen {
        if let Port::Serving(acceptor) = &mut self.port {
            acceptor.abort();
            let _ = acceptor.await;
        }
        self.seen()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Port::Serving(acceptor) = &self.port {
            acceptor.abort();
        }
        let seen = self.seen();
        if seen.surplus > 0 && !std::thread::panicking() {
            panic!("{} requests came after the script had ended, saw {seen}", seen.surplus);
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.addr)
    }
}

async fn accept<F, S>(listener: TcpListener, record: Record, serve: F)
where
    F: Fn(TcpStream, usize, Record) -> S + Send + 'static,
    S: Future<Output = io::Result<()>> + Send + 'static,
{
    // Dropped with this task, and with it every connection.
    let mut connections = JoinSet::new();
    for number in 1.. {
        // Such as a connection that was given up while it was queued.
        let Ok((stream, _)) = listener.accept().await else { continue };
        // Small answers must not wait for an acknowledgement.
        let _ = stream.set_nodelay(true);
        record.change(|seen| seen.connections += 1);
        let (serving, record) = (serve(stream, number, record.clone()), record.clone());
        connections.spawn(async move {
            // A connection may end in any way; what matters is recorded.
            let _ = serving.await;
            record.change(|seen| seen.ended += 1);
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Ends a connection in order: says so, then takes what is still on the way. Closing over unread bytes would reset it.
pub(super) async fn close(stream: &mut TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    drain(stream).await
}

/// Ends a connection with RST, whatever is still on the way.
pub(super) fn reset(stream: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO))
}

async fn drain(stream: &mut TcpStream) -> io::Result<()> {
    let mut sink = vec![0; 16 * 1024];
    while stream.read(&mut sink).await? > 0 {}
    Ok(())
}
