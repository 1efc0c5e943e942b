//! A scripted HTTP/1.1 server, byte by byte.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::{Server, Tally, close, pick, reset};

/// One step of a connection.
#[derive(Clone)]
pub enum Act {
    /// Reads this many bytes of whatever comes, and counts nothing.
    Read(usize),
    /// Reads one request's head, and counts it.
    Head,
    /// Reads one request with its body, and counts both.
    Request,
    /// Sends bytes.
    Send(Vec<u8>),
    /// Waits for the test.
    Wait(Arc<Notify>),
    /// Says that nothing more will be sent; the connection goes on reading.
    Finish,
    /// Closes in order.
    Close,
    /// Resets the connection.
    Reset,
}

/// Sends text.
pub fn send(text: &str) -> Act {
    Act::Send(text.into())
}

/// Sends an answer with an exact length; the connection stays open.
pub fn answer(status: u16, body: &str) -> Act {
    send(&format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

/// The steps of each connection. One whose steps are over goes on to read and count requests, and says nothing more:
/// the empty script is a server that never answers.
pub async fn start(scripts: Vec<Vec<Act>>) -> Server {
    Server::start(move |stream, number, tally| {
        let script = pick(&scripts, number);
        let connection = Connection { stream, unread: Vec::new(), tally };
        async move {
            let _ = connection.run(script).await;
        }
    })
    .await
}

struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
    tally: Tally,
}

/// The client has gone; the script ends.
type Step<T = ()> = std::io::Result<T>;

impl Connection {
    async fn run(mut self, script: Vec<Act>) -> Step {
        for act in script {
            match act {
                Act::Read(bytes) => drop(self.take(bytes).await?),
                Act::Head => drop(self.head().await?),
                Act::Request => self.request().await?,
                Act::Send(bytes) => self.stream.write_all(&bytes).await?,
                Act::Wait(gate) => gate.notified().await,
                Act::Finish => self.stream.shutdown().await?,
                Act::Close => {
                    close(&mut self.stream).await;
                    return Ok(());
                }
                Act::Reset => {
                    reset(&self.stream);
                    return Ok(());
                }
            }
        }
        loop {
            self.request().await?;
        }
    }

    async fn head(&mut self) -> Step<String> {
        let head = self.take_through(b"\r\n\r\n").await?;
        self.tally.add(|seen| seen.requests += 1);
        Ok(String::from_utf8_lossy(&head).to_ascii_lowercase())
    }

    async fn request(&mut self) -> Step {
        let head = self.head().await?;
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        if header("transfer-encoding").is_some() {
            loop {
                let line = String::from_utf8_lossy(&self.take_through(b"\r\n").await?).into_owned();
                let size = usize::from_str_radix(line.trim(), 16).unwrap();
                self.body(size).await?;
                self.take(2).await?;
                if size == 0 {
                    return Ok(());
                }
            }
        }
        let length = header("content-length").map_or(0, |value| value.trim().parse().unwrap());
        self.body(length).await
    }

    async fn body(&mut self, length: usize) -> Step {
        self.take(length).await?;
        self.tally.add(|seen| seen.body_bytes += length);
        Ok(())
    }

    async fn take(&mut self, bytes: usize) -> Step<Vec<u8>> {
        while self.unread.len() < bytes {
            self.more().await?;
        }
        Ok(self.unread.drain(..bytes).collect())
    }

    async fn take_through(&mut self, end: &[u8]) -> Step<Vec<u8>> {
        loop {
            if let Some(at) = self.unread.windows(end.len()).position(|window| window == end) {
                return self.take(at + end.len()).await;
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Step {
        match self.stream.read_buf(&mut self.unread).await? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
