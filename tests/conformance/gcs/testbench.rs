//! A server that fails as Google's own testbench for storage clients does
//! (<https://github.com/googleapis/storage-testbench>): the requests of a test carry its id, and each takes the next of
//! the test's instructions that concerns it; when there is none left, it succeeds.

use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::{Arc, Mutex},
};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{instruction::Instruction, store};

pub const TEST_ID: &str = "x-retry-test-id";

/// One request as the server saw it, and what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub method: String,
    pub target: String,
    /// Not of the requests within an upload's session, whose bytes are in [`Test::stored`].
    pub body: Bytes,
    /// The status that it was answered, or the fault.
    pub end: String,
}

/// One test: what is to happen, and what did.
#[derive(Default)]
pub struct Test {
    pub instructions: VecDeque<Instruction>,
    pub seen: Vec<Seen>,
    /// What was uploaded so far.
    pub stored: Vec<u8>,
    /// What there is to download.
    pub object: Bytes,
}

type Tests = Arc<Mutex<HashMap<String, Test>>>;

pub struct Testbench {
    pub authority: String,
    tests: Tests,
    acceptor: tokio::task::JoinHandle<()>,
}

impl Testbench {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let authority = listener.local_addr().expect("bound").to_string();
        let tests = Tests::default();
        let shared = Arc::clone(&tests);
        let acceptor = tokio::spawn(async move {
            // Dropped with this task, and with it every connection.
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let connection = Connection { stream, unread: BytesMut::new(), tests: Arc::clone(&shared) };
                connections.spawn(connection.serve());
            }
        });
        Testbench { authority, tests, acceptor }
    }

    pub fn begin(&self, id: &str, instructions: &[&str], object: Bytes) {
        let instructions = instructions.iter().map(|text| Instruction::parse(text)).collect();
        let earlier =
            self.tests.lock().unwrap().insert(id.to_owned(), Test { instructions, object, ..Test::default() });
        assert!(earlier.is_none(), "two tests with the id {id}");
    }

    pub fn end(&self, id: &str) -> Test {
        self.tests.lock().unwrap().remove(id).expect("a test that was begun")
    }
}

impl Drop for Testbench {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

/// A request's head, and how much body follows it.
pub struct Head {
    pub method: String,
    pub target: String,
    pub headers: HeaderMap,
    length: usize,
}

impl Head {
    fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let mut words = lines.next().expect("a request line").split(' ').map(str::to_owned);
        let (method, target) = words.next().zip(words.next()).expect("a method and a target");
        let headers: HeaderMap = lines
            .take_while(|line| !line.is_empty())
            .map(|line| {
                let (name, value) = line.split_once(':').expect("a header");
                (name.parse().expect("a name"), value.trim().parse().expect("a value"))
            })
            .collect();
        assert!(!headers.contains_key("transfer-encoding"), "bodies here are of known length");
        let length = headers.get("content-length").map_or(0, |length| length.to_str().unwrap().parse().unwrap());
        Head { method, target, headers, length }
    }

    pub fn is_download(&self) -> bool {
        self.method == "GET" && self.target.contains("alt=media")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }
}

/// Status, further headers and body of the answer to a download.
fn download(head: &Head, object: Bytes) -> (u16, String, Bytes) {
    let tag = format!("etag: {}\r\n", store::ETAG);
    match store::part(head, object.len()) {
        None => (200, tag, object),
        Some(part) => {
            let range = format!("{tag}content-range: bytes {}-{}/{}\r\n", part.start, part.end - 1, object.len());
            (206, range, object.slice(part))
        }
    }
}

struct Connection {
    stream: TcpStream,
    unread: BytesMut,
    tests: Tests,
}

impl Connection {
    /// Until the client goes, or a fault ends the connection.
    async fn serve(mut self) {
        while let Ok(true) = self.request().await {}
    }

    /// Whether the connection lives on.
    async fn request(&mut self) -> io::Result<bool> {
        let head = self.head().await?;
        let id = head.header(TEST_ID).expect("the id of a test").to_owned();
        let upload = store::Upload::read(&head);
        let instruction = self.test(&id, |test| {
            let concerns = |next: &Instruction| next.concerns(&head, upload.as_ref(), test.stored.len());
            test.instructions.front().is_some_and(concerns).then(|| test.instructions.pop_front()).flatten()
        });
        let seen = |body: Bytes, end: &str| Seen {
            method: head.method.clone(),
            target: head.target.clone(),
            body: if upload.is_some() { Bytes::new() } else { body },
            end: end.to_owned(),
        };
        match instruction {
            Some(Instruction::Reset) => {
                let body = self.take(head.length).await?;
                self.test(&id, |test| test.seen.push(seen(body, "reset")));
                self.stream.set_zero_linger()?;
                Ok(false)
            }
            Some(Instruction::Status(status)) => {
                let body = self.take(head.length).await?;
                self.test(&id, |test| test.seen.push(seen(body, &status.to_string())));
                self.answer(status, "", br#"{"error":{}}"#).await
            }
            Some(Instruction::StatusAfter { status, stored }) => {
                let upload = upload.as_ref().expect("concerns uploads alone");
                let wanted = stored - upload.first;
                let data = self.take(wanted).await?;
                self.test(&id, |test| {
                    upload.store(&mut test.stored, &data);
                    test.seen.push(seen(Bytes::new(), &status.to_string()));
                });
                // At once, with the rest of the body on its way.
                self.answer(status, "", br#"{"error":{}}"#).await?;
                self.take(head.length - wanted).await?;
                Ok(true)
            }
            Some(Instruction::BrokenStream { after }) => {
                let body = self.take(head.length).await?;
                let object = self.test(&id, |test| {
                    test.seen.push(seen(body, "broken-stream"));
                    test.object.clone()
                });
                let (status, header, data) = download(&head, object);
                let head = format!("HTTP/1.1 {status} X\r\n{header}content-length: {}\r\n\r\n", data.len());
                self.stream.write_all(head.as_bytes()).await?;
                self.stream.write_all(&data[..after]).await?;
                self.stream.shutdown().await?;
                Ok(false)
            }
            None => {
                let body = self.take(head.length).await?;
                let (status, header, answer) = self.test(&id, |test| {
                    let (status, header, answer) = if head.is_download() {
                        download(&head, test.object.clone())
                    } else {
                        let (status, header) = store::succeed(&head, upload.as_ref(), &body, &mut test.stored);
                        (status, header, test.object.clone())
                    };
                    test.seen.push(seen(body, &status.to_string()));
                    (status, header, answer)
                });
                self.answer(status, &header, &answer).await
            }
        }
    }

    fn test<T>(&self, id: &str, act: impl FnOnce(&mut Test) -> T) -> T {
        act(self.tests.lock().unwrap().get_mut(id).expect("a test that was begun"))
    }

    async fn answer(&mut self, status: u16, header: &str, body: &[u8]) -> io::Result<bool> {
        let head = format!("HTTP/1.1 {status} X\r\n{header}content-length: {}\r\n\r\n", body.len());
        self.stream.write_all(head.as_bytes()).await?;
        self.stream.write_all(body).await?;
        Ok(true)
    }

    async fn head(&mut self) -> io::Result<Head> {
        loop {
            if let Some(end) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = self.unread.split_to(end + 4);
                return Ok(Head::parse(std::str::from_utf8(&head).expect("text")));
            }
            self.more().await?;
        }
    }

    async fn take(&mut self, bytes: usize) -> io::Result<Bytes> {
        while self.unread.len() < bytes {
            self.more().await?;
        }
        Ok(self.unread.split_to(bytes).freeze())
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.unread).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
