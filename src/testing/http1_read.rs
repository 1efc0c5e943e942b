//! Requests of HTTP/1.1, read from a socket.

use std::{
    io::{self, ErrorKind},
    time::Duration,
};

use bytes::{Buf, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Version, header, request::Parts};
use tokio::{
    io::{AsyncReadExt, Interest},
    net::TcpStream,
};

use super::record::Arrival;

/// Longer heads than this, and lines of chunks, are no client's.
const LONGEST: usize = 1024 * 1024;
const MOST_HEADERS: usize = 512;

/// A full socket is read in a few steps.
const AT_ONCE: usize = 16 * 1024;

/// How often the end of an unread request is looked for.
const LOOK: Duration = Duration::from_millis(5);

pub(super) struct Reader {
    stream: TcpStream,
    unread: BytesMut,
}

impl Reader {
    pub(super) fn new(stream: TcpStream) -> Self {
        Reader { stream, unread: BytesMut::new() }
    }

    pub(super) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    pub(super) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// The head of a request.
    pub(super) async fn head(&mut self) -> io::Result<Parts> {
        loop {
            if let Some((head, length)) = parse(&self.unread)? {
                self.unread.advance(length);
                return Ok(head);
            }
            self.more().await?;
        }
    }

    /// Its body, to the end.
    pub(super) async fn body(&mut self, headers: &HeaderMap, arrival: &mut Arrival) -> io::Result<()> {
        if headers.contains_key(header::TRANSFER_ENCODING) {
            return self.chunks(arrival).await;
        }
        let length = match headers.get(header::CONTENT_LENGTH) {
            Some(length) => length.to_str().ok().and_then(|length| length.parse().ok()).ok_or_else(invalid)?,
            None => 0,
        };
        self.data(length, arrival).await?;
        arrival.complete(None);
        Ok(())
    }

    async fn chunks(&mut self, arrival: &mut Arrival) -> io::Result<()> {
        loop {
            let line = self.line().await?;
            let size = line[..].split(|byte| *byte == b';').next().unwrap_or_default();
            let size = std::str::from_utf8(size).ok().and_then(|size| u64::from_str_radix(size.trim(), 16).ok());
            match size.ok_or_else(invalid)? {
                0 => break,
                size => self.data(size, arrival).await?,
            }
            if !self.line().await?.is_empty() {
                return Err(invalid());
            }
        }
        let mut trailers = HeaderMap::new();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                break;
            }
            let colon = line.iter().position(|byte| *byte == b':').ok_or_else(invalid)?;
            append(&mut trailers, &line[..colon], line[colon + 1..].trim_ascii())?;
        }
        arrival.complete(Some(trailers).filter(|trailers| !trailers.is_empty()));
        Ok(())
    }

    async fn data(&mut self, mut left: u64, arrival: &mut Arrival) -> io::Result<()> {
        while left > 0 {
            self.something().await?;
            let length = usize::try_from(left).map_or(self.unread.len(), |left| left.min(self.unread.len()));
            left -= length as u64;
            arrival.data(self.unread.split_to(length));
        }
        Ok(())
    }

    /// A line without its end.
    async fn line(&mut self) -> io::Result<BytesMut> {
        loop {
            if let Some(end) = self.unread.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.unread.split_to(end);
                self.unread.advance(2);
                return Ok(line);
            }
            self.more().await?;
        }
    }

    /// Waits for bytes, where there are none yet.
    pub(super) async fn something(&mut self) -> io::Result<()> {
        if self.unread.is_empty() { self.more().await } else { Ok(()) }
    }

    /// Waits until the client has gone. What comes meanwhile is kept.
    pub(super) async fn until_gone(&mut self) -> io::Error {
        loop {
            if let Err(gone) = self.more().await {
                return gone;
            }
        }
    }

    /// The same, with nothing read: what the client sends stays on its way.
    pub(super) async fn until_gone_unread(&mut self) -> io::Error {
        loop {
            match self.stream.ready(Interest::READABLE).await {
                Ok(ready) if ready.is_read_closed() => return ErrorKind::UnexpectedEof.into(),
                // It is ready for as long as there is something to read, so the end is looked for now and then.
                Ok(_) => tokio::time::sleep(LOOK).await,
                Err(gone) => return gone,
            }
        }
    }

    async fn more(&mut self) -> io::Result<()> {
        if self.unread.len() > LONGEST {
            return Err(invalid());
        }
        self.unread.reserve(AT_ONCE);
        match self.stream.read_buf(&mut self.unread).await? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// A head and its length, once it is all there.
fn parse(bytes: &[u8]) -> io::Result<Option<(Parts, usize)>> {
    let mut lines = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut read = httparse::Request::new(&mut lines);
    let length = match read.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(invalid()),
    };
    let version = if read.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
    let request = Request::builder()
        .method(read.method.unwrap_or_default())
        .uri(read.path.unwrap_or_default())
        .version(version)
        .body(())
        .map_err(|_| invalid())?;
    let (mut head, ()) = request.into_parts();
    for line in read.headers {
        append(&mut head.headers, line.name.as_bytes(), line.value)?;
    }
    Ok(Some((head, length)))
}

fn append(headers: &mut HeaderMap, name: &[u8], value: &[u8]) -> io::Result<()> {
    let name = HeaderName::from_bytes(name).map_err(|_| invalid())?;
    headers.append(name, HeaderValue::from_bytes(value).map_err(|_| invalid())?);
    Ok(())
}

fn invalid() -> io::Error {
    ErrorKind::InvalidData.into()
}
