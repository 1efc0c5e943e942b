//! A page for Prometheus: a recorder, and a server on loopback that shows what it has.

use std::{convert::Infallible, error::Error};

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;

/// The recorder first, then what the names mean.
pub fn install() -> Result<PrometheusHandle, Box<dyn Error + Send + Sync>> {
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Full(redial::metrics::WAIT.to_owned()), &[0.1, 0.3, 1.0, 3.0, 10.0])?
        .install_recorder()?;
    redial::metrics::describe();
    Ok(recorder)
}

/// The page at a free port: what Prometheus is told to scrape.
pub async fn serve(page: PrometheusHandle) -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/metrics", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let page = page.clone();
            let answer = service_fn(move |_| {
                let text = Response::new(Full::new(Bytes::from(page.render())));
                async move { Ok::<_, Infallible>(text) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), answer));
        }
    });
    Ok(url)
}
