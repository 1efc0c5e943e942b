//! The server, in a process of its own: nothing of its work is counted as the client's.

use std::{
    convert::Infallible,
    env,
    io::{self, BufRead, BufReader, Read, Write},
    net::Ipv4Addr,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};

const WORD: &str = "--serve";

/// A path whose answer takes a moment, as that of every server does that is not on loopback. The client has then always
/// gone to sleep, and each of its calls goes the same way.
pub const SLOW: &str = "/slow";

/// A path that is answered at once.
pub const FAST: &str = "/fast";

/// How long such an answer takes.
const MOMENT: Duration = Duration::from_millis(1);

/// A server that ends with this guard, and with this process.
pub struct Server {
    process: Child,
    pub port: u16,
}

impl Server {
    /// HTTP/1.1 and HTTP/2, on a free port of loopback.
    pub fn start() -> Self {
        let mut process = Command::new(env::current_exe().expect("this program"))
            .arg(WORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("its output is a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("its port");
        Server { process, port: line.trim().parse().expect("a port") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its input has ended, and so has it; this is for the one that hangs.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Whether this process is to be the server.
pub fn is_asked_for() -> bool {
    env::args().any(|word| word == WORD)
}

/// Serves until its input ends.
pub fn serve() {
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        println!("{}", listener.local_addr().expect("its address").port());
        io::stdout().flush().expect("somebody listens");
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            stream.set_nodelay(true).expect("a socket");
            tokio::spawn(async move {
                let server = auto::Builder::new(TokioExecutor::new());
                // The client may be gone.
                let _ = server.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
            });
        }
    });
}

/// 200 with 8 headers and 256 bytes, as much as was asked with, once the request's body is read.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let slow = request.uri().path() == SLOW;
    let mut body = request.into_body();
    while let Some(Ok(_)) = body.frame().await {}
    if slow {
        tokio::time::sleep(MOMENT).await;
    }
    // hyper's server adds `content-length` and `date`.
    let answer = Response::builder()
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CACHE_CONTROL, "no-store")
        .header(header::ETAG, "\"33a64df551425fcc55e4d42a148795d9\"")
        .header(header::SERVER, "server/1")
        .header(header::VARY, "accept-encoding")
        .header("x-request-id", "00000000000000000000000000000007")
        .body(Full::new(Bytes::from_static(&[1; 256])));
    Ok(answer.expect("an answer"))
}
