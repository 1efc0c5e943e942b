//! An HTTP/1.1 server that keeps the very bytes of each request.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::common::Server;

/// The bytes of each request, in the order of their arrival.
pub type Requests = Arc<Mutex<Vec<Vec<u8>>>>;

/// Answers the first request with the first status, and so on; the last serves all that follow.
pub async fn keeping<const N: usize>(statuses: [u16; N]) -> (Server, Requests) {
    let requests = Requests::default();
    let kept = Arc::clone(&requests);
    let server = Server::start(move |mut stream, _, _| {
        let kept = Arc::clone(&kept);
        async move {
            while let Some(request) = read(&mut stream).await {
                let number = {
                    let mut kept = kept.lock().unwrap();
                    kept.push(request);
                    kept.len()
                };
                let status = statuses[(number - 1).min(N - 1)];
                let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\n\r\ne{number}");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    })
    .await;
    (server, requests)
}

/// One request, head and body; `None` where the client has gone first.
async fn read(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let complete = match length {
            Some(length) => body.len() >= length,
            None if head.contains("transfer-encoding: chunked") => body.ends_with("0\r\n\r\n"),
            None => true,
        };
        if complete {
            return Some(bytes);
        }
    }
}
