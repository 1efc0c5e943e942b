//! The same faults through what stands between a client and the caller.

use std::error::Error;
use std::fmt;
use std::future::{self, Ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower::{Service, ServiceExt, buffer::Buffer};

use crate::common::raw_h1::{self, Act};
use crate::scene::{Body, BoxError, Failed, fail, http1, post};

scenes! {
    shared: "refused, behind Arc<client's error>" => "connect unsent", [0, 0, 0], async {
        Failed::alone(Arc::new(refused().await))
    };

    shared_and_erased: "refused, behind Arc<dyn Error>" => "connect unsent", [0, 0, 0], async {
        Failed::alone(Arc::<dyn Error + Send + Sync>::from(BoxError::from(refused().await)))
    };

    boxed_twice: "refused, behind Box<client's error>" => "connect unsent", [0, 0, 0], async {
        Failed::alone(BoxError::from(Box::new(refused().await)))
    };

    in_an_io_error: "refused, within an I/O error" => "connect unsent", [0, 0, 0], async {
        Failed::alone(std::io::Error::other(refused().await))
    };

    in_anothers_error: "refused, beneath an error as reqwest's" => "connect unsent", [0, 0, 0], async {
        Failed::alone(Wrapped(refused().await.into()))
    };

    in_a_buffers_error: "refused when made ready, through tower's buffer" => "connect unsent", [0, 0, 0], async {
        let mut buffer = Buffer::new(NeverReady(Some(refused().await)), 1);
        let error = match buffer.ready().await {
            Ok(ready) => ready.call(post("http://x/")).await.unwrap_err(),
            Err(error) => error,
        };
        Failed::alone(error)
    };

    incomplete_in_anothers_error: "closed without an answer, beneath an error as reqwest's"
        => "closed", [1, 1, 2], async {
        let server = raw_h1::start(vec![vec![Act::Request, Act::Close]]).await;
        let error = fail(&http1(), post(&server.url("http"))).await;
        Failed::new(Wrapped(error.into()), &server)
    };
}

async fn refused() -> hyper_util::client::legacy::Error {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    fail(&http1(), post(&format!("http://{}/", socket.local_addr().unwrap()))).await
}

#[derive(Debug)]
struct Wrapped(BoxError);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("error sending request")
    }
}

impl Error for Wrapped {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

/// Fails once when it is made ready, as a balancer whose connection fails.
struct NeverReady(Option<hyper_util::client::legacy::Error>);

impl Service<Request<Body>> for NeverReady {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Ready<Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self.0.take() {
            Some(error) => Poll::Ready(Err(error.into())),
            None => Poll::Pending,
        }
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        future::ready(Err("never ready".into()))
    }
}
