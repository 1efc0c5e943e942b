//! Each fault, for a request without evidence, with a key, and with a safe method.

use std::{fmt::Write, time::Duration};

use http::Method;
use redial::{StopReason, Timeouts};

use super::{End, call, keyed, order};
use crate::{
    common::{
        Server, raw_h1,
        raw_h2::{self, Script, reason},
    },
    support::{Wire, client_with, nobody, policy, policy_within},
};

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

    async fn server(self) -> Server {
        use raw_h1::{Act::*, answer, start};
        match self {
            // Nobody asks it.
            Refused => start(vec![]).await,
            ResetBeforeTheAnswer => start(vec![vec![Request, Reset]]).await,
            ClosedBeforeTheAnswer => start(vec![vec![Request, Close]]).await,
            ClosedOnAReusedConnection => {
                let first = vec![Request, answer(200, ""), Request, Close];
                start(vec![first, vec![Request, answer(200, "")]]).await
            }
            ClosedWhileIdle => {
                let first = vec![Request, answer(200, ""), Close];
                start(vec![first, vec![Request, answer(200, "")]]).await
            }
            Unavailable => start(vec![(0..3).flat_map(|_| [Request, answer(503, "")]).collect()]).await,
            Silence => start(vec![vec![]]).await,
            StreamRefused | StreamCancelled | LeftOutByGoaway | ConnectionClosed => raw_h2::start(self.scripts()).await,
        }
    }

    fn scripts(self) -> Vec<Script> {
        use raw_h2::Act::*;
        let answered = || vec![Body, Answer(200, "")];
        match self {
            StreamRefused => vec![Script::on([vec![Reset(reason::REFUSED_STREAM)], answered()])],
            StreamCancelled => vec![Script::on([(); 3].map(|()| vec![Body, Reset(reason::CANCEL)]))],
            LeftOutByGoaway => vec![Script::on([vec![Body, Goaway(0, reason::NO_ERROR)]]), Script::on([answered()])],
            _ => vec![Script::on([vec![Body, Close]])],
        }
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
        let server = self.server().await;
        let policy = match self {
            Silence => policy_within(Timeouts { attempt: Duration::from_millis(300), total: Duration::from_secs(15) }),
            _ => policy(),
        };
        let client = client_with(self.wire(), policy);
        let nobody = nobody();
        let url = match self {
            Refused => format!("http://{}/x", nobody.local_addr().unwrap()),
            _ => server.url("http"),
        };
        if self.is_reused() {
            assert_eq!(call(&client, order(Method::GET, &url)).await, End::ok(1));
        }
        if self == ClosedWhileIdle {
            // The server has seen the client's end, too.
            server.until(|seen| seen.ended == 1).await;
        }
        let before = server.seen();
        let request = order(method, &url);
        let request = match key {
            Some(key) => keyed(request, key),
            None => request,
        };
        let end = call(&client, request).await;
        (server.seen().requests - before.requests, end)
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
