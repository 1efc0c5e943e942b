//! One connection of HTTP/1.1, byte by byte.

use std::{io, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header, request::Parts};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::{
    answer::{Answer, Part},
    http1_read::Reader,
    record::Record,
    reply::{Reply, Then, What},
    script::Player,
    server,
};

/// What becomes of the connection.
enum Flow {
    Open,
    Close,
    Reset,
}

pub(super) async fn run(stream: TcpStream, number: usize, player: Player, record: Record) -> io::Result<()> {
    let mut connection = Connection { reader: Reader::new(stream) };
    let flow = connection.serve(number, player, record).await?;
    let mut stream = connection.reader.into_stream();
    match flow {
        Flow::Reset => server::reset(&stream),
        Flow::Open | Flow::Close => server::close(&mut stream).await,
    }
}

struct Connection {
    reader: Reader,
}

impl Connection {
    /// Serves requests until the connection is to be ended. An error: the client has ended it.
    async fn serve(&mut self, number: usize, player: Player, record: Record) -> io::Result<Flow> {
        loop {
            let head = self.reader.head().await?;
            let mut arrival = record.arrived(number, &head);
            let Some(reply) = player.next(&head.method, head.uri.path()) else {
                record.change(|seen| seen.surplus += 1);
                return Ok(Flow::Close);
            };
            if !reply.early {
                self.reader.body(&head.headers, &mut arrival).await?;
            }
            self.wait(reply.after, reply).await?;
            match self.act(reply, &head).await? {
                Flow::Open => arrival.over(),
                flow => return Ok(flow),
            }
            if reply.then == Then::Close {
                return Ok(Flow::Close);
            }
            if reply.early {
                self.reader.body(&head.headers, &mut arrival).await?;
            }
            if reply.then == Then::CloseOnReuse {
                self.reader.something().await?;
                return Ok(Flow::Close);
            }
        }
    }

    async fn act(&mut self, reply: &Reply, head: &Parts) -> io::Result<Flow> {
        match &reply.what {
            What::Answer(answer) => self.answer(answer, reply, &head.method).await,
            What::Stall => self.silence(reply).await,
            What::Reset => Ok(Flow::Reset),
            What::HalfHead => {
                self.send(b"HTTP/1.1 20").await?;
                Ok(Flow::Close)
            }
            // The others were turned down when the server was made.
            What::Close | What::ResetStream(_) | What::NotConnected | What::Error(_) => Ok(Flow::Close),
        }
    }

    async fn answer(&mut self, answer: &Answer, reply: &Reply, method: &Method) -> io::Result<Flow> {
        let framing = Framing::of(answer);
        let mut head = format!("HTTP/1.1 {} ", answer.status.as_u16()).into_bytes();
        head.extend(answer.status.canonical_reason().unwrap_or("Scripted").bytes());
        head.extend(b"\r\n");
        lines(&mut head, &answer.headers);
        match framing {
            Framing::Length(length) => head.extend(format!("content-length: {length}\r\n").bytes()),
            Framing::Chunked => head.extend(b"transfer-encoding: chunked\r\n"),
            Framing::AsGiven => {}
        }
        head.extend(b"\r\n");
        self.send(&head).await?;
        if method != Method::HEAD && !bodiless(answer.status) {
            let chunked = framing == Framing::Chunked;
            for part in &answer.parts {
                match part {
                    Part::Data(data) => self.data(data, chunked).await?,
                    Part::Pause(time) => self.wait(*time, reply).await?,
                    Part::Stall => return self.silence(reply).await,
                    // The second was turned down when the server was made.
                    Part::Close | Part::ResetStream(_) => return Ok(Flow::Close),
                    Part::Reset => return Ok(Flow::Reset),
                    Part::Broken => {
                        self.send(b"no size\r\n").await?;
                        return Ok(Flow::Close);
                    }
                }
            }
            if chunked {
                let mut end = b"0\r\n".to_vec();
                lines(&mut end, &answer.trailers);
                end.extend(b"\r\n");
                self.send(&end).await?;
            }
        }
        Ok(if closes(&answer.headers) { Flow::Close } else { Flow::Open })
    }

    async fn data(&mut self, data: &Bytes, chunked: bool) -> io::Result<()> {
        if !chunked {
            return self.send(data).await;
        }
        if data.is_empty() {
            // It would be the end.
            return Ok(());
        }
        let size = format!("{:x}\r\n", data.len());
        self.send(&[size.as_bytes(), data, b"\r\n"].concat()).await
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.reader.stream().write_all(bytes).await
    }

    /// Waits, or ends with the client.
    async fn wait(&mut self, time: Duration, reply: &Reply) -> io::Result<()> {
        if time.is_zero() {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            gone = self.until_gone(reply) => Err(gone),
        }
    }

    async fn silence(&mut self, reply: &Reply) -> io::Result<Flow> {
        Err(self.until_gone(reply).await)
    }

    /// Where the request's body was left unread it stays so.
    async fn until_gone(&mut self, reply: &Reply) -> io::Error {
        if reply.early { self.reader.until_gone_unread().await } else { self.reader.until_gone().await }
    }
}

/// How an answer says where its body ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    /// By a header of the script, or, where there is no body, not at all.
    AsGiven,
}

impl Framing {
    pub(super) fn of(answer: &Answer) -> Self {
        if bodiless(answer.status) && answer.status != StatusCode::NOT_MODIFIED
            || answer.headers.contains_key(header::CONTENT_LENGTH)
            || answer.headers.contains_key(header::TRANSFER_ENCODING)
        {
            return Framing::AsGiven;
        }
        match answer.whole() {
            Some(length) if answer.trailers.is_empty() => Framing::Length(length),
            _ => Framing::Chunked,
        }
    }
}

/// Statuses whose answers have no body (RFC 9112, 6.3).
pub(super) fn bodiless(status: StatusCode) -> bool {
    status.is_informational() || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED
}

fn closes(headers: &HeaderMap) -> bool {
    headers.get_all(header::CONNECTION).iter().any(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
}

fn lines(head: &mut Vec<u8>, headers: &HeaderMap) {
    for (name, value) in headers {
        head.extend(name.as_str().bytes());
        head.extend(b": ");
        head.extend(value.as_bytes());
        head.extend(b"\r\n");
    }
}
