//! A scripted HTTP/2 server, frame by frame ([RFC 9113](https://www.rfc-editor.org/rfc/rfc9113)), without TLS.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::{Server, Tally, close, pick, reset};

/// Error codes (section 7).
pub mod reason {
    pub const NO_ERROR: u32 = 0x0;
    pub const INTERNAL_ERROR: u32 = 0x2;
    pub const REFUSED_STREAM: u32 = 0x7;
    pub const CANCEL: u32 = 0x8;
    pub const ENHANCE_YOUR_CALM: u32 = 0xb;
    /// The last one that has a name, HTTP_1_1_REQUIRED.
    pub const LAST: u32 = 0xd;
}

/// The largest stream id: a `GOAWAY` with it leaves no stream out.
pub const EVERY_STREAM: u32 = 0x7fff_ffff;

/// `SETTINGS_MAX_CONCURRENT_STREAMS` (section 6.5.2).
pub const MAX_CONCURRENT_STREAMS: u16 = 0x3;

/// Types of frames (section 6).
mod frame {
    pub const DATA: u8 = 0x0;
    pub const HEADERS: u8 = 0x1;
    pub const RST_STREAM: u8 = 0x3;
    pub const SETTINGS: u8 = 0x4;
    pub const PING: u8 = 0x6;
    pub const GOAWAY: u8 = 0x7;
}

const ACK: u8 = 0x1;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

/// One step of a connection. "This stream" is that of the request whose steps these are.
#[derive(Clone)]
pub enum Act {
    /// Reads until this stream's request has ended.
    Body,
    /// `RST_STREAM` of this stream.
    Reset(u32),
    /// `HEADERS` with a status, and `DATA` that ends this stream.
    Answer(u16, &'static str),
    /// The same on a stream of an earlier request.
    AnswerTo(u32, u16, &'static str),
    /// `GOAWAY` with a last stream id and a reason.
    Goaway(u32, u32),
    /// Bytes that need not be a frame.
    Send(Vec<u8>),
    /// `PING`, and waits for its answer: then the client has processed all that was sent before.
    Ping,
    /// Waits for the test.
    Wait(Arc<Notify>),
    /// Closes in order.
    Close,
    /// Resets the TCP connection.
    ResetConnection,
}

/// A frame that breaks the protocol: `DATA` on stream 0.
pub fn violation() -> Act {
    Act::Send(encode(frame::DATA, 0, 0, b"x"))
}

/// What a connection does.
#[derive(Clone, Default)]
pub struct Script {
    /// Its `SETTINGS`, identifier and value.
    pub settings: Vec<(u16, u32)>,
    /// After the preface, before any request.
    pub first: Vec<Act>,
    /// For the first request, the second, … A request without steps is counted and never answered; the connection goes
    /// on reading, and answers `SETTINGS` and `PING` as it must.
    pub requests: Vec<Vec<Act>>,
}

impl Script {
    /// The steps for the first request, the second, …
    pub fn on<const N: usize>(requests: [Vec<Act>; N]) -> Script {
        Script { requests: requests.into(), ..Script::default() }
    }
}

/// Serves the first connection by the first script, and so on; the last serves all that follow.
pub async fn start(scripts: Vec<Script>) -> Server {
    Server::start(move |stream, number, tally| {
        let script = pick(&scripts, number);
        let connection = Connection { stream, tally, waiting: VecDeque::new(), complete: HashSet::new(), pongs: 0 };
        async move {
            let _ = connection.run(script).await;
        }
    })
    .await
}

struct Connection {
    stream: TcpStream,
    tally: Tally,
    /// Streams of requests that came and whose steps are still to be made.
    waiting: VecDeque<u32>,
    /// Streams that the client has ended.
    complete: HashSet<u32>,
    pongs: usize,
}

/// An error means that the client has gone, or that the script has ended the connection.
type Step = io::Result<()>;

impl Connection {
    async fn run(mut self, script: Script) -> Step {
        let mut preface = [0; 24];
        self.stream.read_exact(&mut preface).await?;
        let settings: Vec<u8> = script
            .settings
            .iter()
            .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat())
            .collect();
        self.send(frame::SETTINGS, 0, 0, &settings).await?;
        for act in script.first {
            self.act(0, act).await?;
        }
        let mut requests = script.requests.into_iter();
        loop {
            while let Some(stream) = self.waiting.pop_front() {
                for act in requests.next().unwrap_or_default() {
                    self.act(stream, act).await?;
                }
            }
            self.read().await?;
        }
    }

    async fn act(&mut self, stream: u32, act: Act) -> Step {
        match act {
            Act::Body => {
                while !self.complete.contains(&stream) {
                    self.read().await?;
                }
                Ok(())
            }
            Act::Reset(reason) => self.send(frame::RST_STREAM, 0, stream, &reason.to_be_bytes()).await,
            Act::Answer(status, body) => self.answer(stream, status, body).await,
            Act::AnswerTo(stream, status, body) => self.answer(stream, status, body).await,
            Act::Goaway(last, reason) => {
                let payload = [last.to_be_bytes(), reason.to_be_bytes()].concat();
                self.send(frame::GOAWAY, 0, 0, &payload).await
            }
            Act::Send(bytes) => self.stream.write_all(&bytes).await,
            Act::Ping => {
                self.send(frame::PING, 0, 0, b"redialed").await?;
                let before = self.pongs;
                while self.pongs == before {
                    self.read().await?;
                }
                self.tally.add(|seen| seen.pongs += 1);
                Ok(())
            }
            Act::Wait(gate) => {
                gate.notified().await;
                Ok(())
            }
            Act::Close => {
                close(&mut self.stream).await;
                Err(io::ErrorKind::NotConnected.into())
            }
            Act::ResetConnection => {
                reset(&self.stream);
                Err(io::ErrorKind::NotConnected.into())
            }
        }
    }

    async fn answer(&mut self, stream: u32, status: u16, body: &str) -> Step {
        // HPACK (RFC 7541, 6.2.2): a literal, not indexed, named by entry 8 of the static table, `:status`.
        let head = format!("\x08\x03{status}");
        self.send(frame::HEADERS, END_HEADERS, stream, head.as_bytes()).await?;
        self.send(frame::DATA, END_STREAM, stream, body.as_bytes()).await
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Step {
        self.stream.write_all(&encode(kind, flags, stream, payload)).await
    }

    /// Reads one frame, counts it, and answers what a peer must answer.
    async fn read(&mut self) -> Step {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await?;
        let [a, b, c, kind, flags, id @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.stream.read_exact(&mut payload).await?;
        let stream = u32::from_be_bytes(id) & EVERY_STREAM;
        match kind {
            frame::HEADERS => {
                self.tally.add(|seen| seen.requests += 1);
                self.waiting.push_back(stream);
            }
            // hyper pads nothing, so that the payload is the data.
            frame::DATA => self.tally.add(|seen| seen.body_bytes += payload.len()),
            frame::SETTINGS if flags & ACK == 0 => self.send(frame::SETTINGS, ACK, 0, &[]).await?,
            frame::PING if flags & ACK == 0 => self.send(frame::PING, ACK, 0, &payload).await?,
            frame::PING => self.pongs += 1,
            _ => {}
        }
        if matches!(kind, frame::HEADERS | frame::DATA) && flags & END_STREAM != 0 {
            self.complete.insert(stream);
        }
        Ok(())
    }
}

fn encode(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}
