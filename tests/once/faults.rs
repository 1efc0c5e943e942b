//! Each fault, for a request without evidence, with a key, and with a safe method.

use std::{fmt::Write, time::Duration};

use http::Method;
use redial::{
    StopReason, Timeouts,
    testing::{LastStream, Reason, Reply, Server},
};

use super::{End, call, keyed, order, play};
use crate::support::{Wire, client_with, policy, policy_within};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Refused,
    ResetBeforeTheAnswer,
    ClosedBeforeTheAnswer,
    ClosedOnAReusedConnection,
    ClosedWhileIdle,
    Unavailable,
    Silence,
    StreamRefused,
    StreamCancelled,
    LeftOutByGoaway,
    ConnectionClosed,
}

use Fault::*;

impl Fault {
    const ALL: [Fault; 11] = [
        Refused,
        ResetBeforeTheAnswer,
        ClosedBeforeTheAnswer,
        ClosedOnAReusedConnection,
        ClosedWhileIdle,
        Unavailable,
        Silence,
        StreamRefused,
        StreamCancelled,
        LeftOutByGoaway,
        ConnectionClosed,
    ];

    const fn says(self) -> &'static str {
        match self {
            Refused => "connect refused",
            ResetBeforeTheAnswer => "reset before the answer",
            ClosedBeforeTheAnswer => "closed before the answer",
            ClosedOnAReusedConnection => "closed on a reused connection, after the write",
            ClosedWhileIdle => "closed while idle",
            Unavailable => "503",
            Silence => "timeout",
            StreamRefused => "h2: REFUSED_STREAM, then an answer",
            StreamCancelled => "h2: stream cancelled",
            LeftOutByGoaway => "h2: left out by GOAWAY, then an answer",
            ConnectionClosed => "h2: connection closed",
        }
    }

    const fn wire(self) -> Wire {
        match self {
            StreamRefused | StreamCancelled | LeftOutByGoaway | ConnectionClosed => Wire::Http2,
            _ => Wire::Http1,
        }
    }

    /// A connection that has served a request before.
    const fn is_reused(self) -> bool {
        matches!(self, ClosedOnAReusedConnection | ClosedWhileIdle)
    }

    fn server(self) -> Server {
        let answer = || Reply::status(200);
        let script = match self {
            Refused => return Server::refusing(),
            ResetBeforeTheAnswer => vec![Reply::reset()],
            ClosedBeforeTheAnswer | ConnectionClosed => vec![Reply::close()],
            ClosedOnAReusedConnection => vec![answer(), Reply::close(), answer()],
            ClosedWhileIdle => vec![answer().close_after(), answer()],
            Unavailable => vec![Reply::status(503)],
            Silence => vec![Reply::stall()],
            StreamRefused => vec![Reply::refused_stream().early(), answer()],
            StreamCancelled => vec![Reply::reset_stream(Reason::Cancel)],
            LeftOutByGoaway => vec![Reply::stall().with_goaway(LastStream::Before, Reason::NoError), answer()],
        };
        play(self.wire(), script)
    }

    /// What a request without evidence comes to, and one with it: requests at the server, and the end of the call.
    fn expected(self, evidence: bool) -> (usize, End) {
        let (attempts, stop) = match evidence {
            true => (3, StopReason::Attempts),
            false => (1, StopReason::NoEvidence),
        };
        match self {
            // Provably never arrived: evidence makes no difference.
            Refused => (0, End::failed(3, StopReason::Attempts)),
            StreamRefused | LeftOutByGoaway => (2, End::ok(2)),
            // The client saw it close, and took another.
            ClosedWhileIdle => (1, End::ok(1)),
            ClosedOnAReusedConnection if evidence => (2, End::ok(2)),
            Unavailable => (attempts, End::answered(503, attempts, stop)),
            _ => (attempts, End::failed(attempts, stop)),
        }
    }

    /// What the server counts, and how the call ended.
    async fn meet(self, method: Method, key: Option<&'static str>) -> (usize, End) {
        let server = self.server();
        let policy = match self {
            Silence => policy_within(Timeouts { attempt: Duration::from_millis(300), total: Duration::from_secs(15) }),
            _ => policy(),
        };
        let client = client_with(self.wire(), policy);
        let url = server.url("/x");
        if self.is_reused() {
            assert_eq!(call(&client, order(Method::GET, &url)).await, End::ok(1));
        }
        if self == ClosedWhileIdle {
            // The server has seen the client's end, too.
            server.until(|seen| seen.ended == 1).await;
        }
        let before = server.seen().requests.len();
        let request = order(method, &url);
        let request = match key {
            Some(key) => keyed(request, key),
            None => request,
        };
        let end = call(&client, request).await;
        (server.seen().requests.len() - before, end)
    }
}

#[tokio::test]
async fn table() {
    let mut table = format!("\n{:<48}{:>6}{:>10}{:>6}  {}\n", "fault", "POST", "POST+key", "GET", "stop");
    let mut wrong = String::new();
    for fault in Fault::ALL {
        let plain = fault.meet(Method::POST, None).await;
        let with_key = fault.meet(Method::POST, Some("8e03978e")).await;
        let safe = fault.meet(Method::GET, None).await;
        let stop = |end: End| end.stop.map_or("-", StopReason::as_str);
        let stops = format!("{} / {} / {}", stop(plain.1), stop(with_key.1), stop(safe.1));
        writeln!(table, "{:<48}{:>6}{:>10}{:>6}  {stops}", fault.says(), plain.0, with_key.0, safe.0).unwrap();
        for (is, evidence) in [(plain, false), (with_key, true), (safe, true)] {
            if is != fault.expected(evidence) {
                writeln!(wrong, "{}: {is:?}, not {:?}", fault.says(), fault.expected(evidence)).unwrap();
            }
        }
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{table}\n{wrong}");
}
