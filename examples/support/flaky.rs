//! A server on loopback that answers with these statuses, one a request, and with the last one from then on. A
//! redirect leads to `/moved`.

use std::{
    convert::Infallible,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::net::TcpListener;

/// Starts it and returns its URL. It ends with the runtime.
pub async fn server<const N: usize>(statuses: [u16; N]) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let seen = Arc::new(AtomicUsize::new(0));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let seen = Arc::clone(&seen);
            let answer = service_fn(move |_: Request<Incoming>| {
                let status = statuses[seen.fetch_add(1, Ordering::Relaxed).min(N - 1)];
                let mut response = Response::new(Full::new(Bytes::from(format!("answered {status}"))));
                *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
                if response.status().is_redirection() {
                    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/moved"));
                }
                async move { Ok::<_, Infallible>(response) }
            });
            tokio::spawn(async move {
                let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    });
    Ok(url)
}
