//! `explain` and `matrix` beside the engine: the same contract, the same request, the same outcome.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use redial::{
    CallReport, RetryLayer,
    contract::Contract,
    testing::{self, Reply},
};
use tower::{Layer, ServiceExt};

use crate::support::*;

const CONTRACT: &str = r#"format = 1

[provider.shop]
hosts     = ["api.shop.example", "*.shop.example"]
contract  = { url = "https://shop.example/docs", reviewed = 2026-11-30, owner = "platform" }
timeouts  = { attempt = "2s", total = "60s" }
attempts  = 3
backoff   = { initial = "200ms", multiplier = 2.0, max = "1s" }
budget    = { setting = "unlimited", reason = "one call" }
transient = { status = [408, 429, 502, 503, 504], faults = ["connect", "reset", "timeout", "refused-stream"], grpc = ["UNAVAILABLE", { code = "RESOURCE_EXHAUSTED", rejected = "docs" }] }
business  = { status = [404, 422], grpc = ["NOT_FOUND"] }
server    = { wait = [{ header = "x-wait-ms", unit = "ms" }], reset = [{ header = "x-reset", unit = "seconds" }], should_retry = "x-should-retry", longest_wait = "20s" }
elsewhere = []
fallback  = "none"

[[provider.shop.answer]]
when  = { status = [403, 429], header = { "x-left" = "0" } }
means = "rejected"
wait  = { header = "x-reset", unit = "seconds" }
basis = "official"

[[provider.shop.answer]]
when  = { status = 403, body = { json = "/message", contains = "secondary" } }
means = "rejected"
wait  = { at_least = "5s" }
basis = "official"

[[provider.shop.operation]]
name  = "orders"
match = "/orders"
key   = { header = "order-key", valid_for = "24h", replays = true }

[[provider.shop.operation.answer]]
when  = { status = [409, 422], after = "unknown" }
means = "verify"
basis = "practice"

[[provider.shop.operation]]
name  = "position"
match = ["DELETE /position", "PUT /position"]
idempotent = { method = false, headers = ["if-match"], query = ["generation"] }

[[provider.shop.operation]]
name  = "stated"
match = "POST /stated"
idempotent = { stated = "it only reads" }
attempts = 2

[[provider.shop.operation.answer]]
when  = { status = 503, header = { "x-gone" = true } }
means = "business"
basis = "practice"

[[provider.shop.operation.answer]]
when  = { status = 404 }
means = "success"
basis = "practice"

[[provider.shop.operation]]
name  = "money"
match = "POST /money"
never = "money"
"#;

/// Numbers that look random, the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.roll(of.len())]
    }
}

struct Asked {
    method: &'static str,
    url: String,
    headers: Vec<(&'static str, &'static str)>,
}

impl Asked {
    fn request(&self) -> Request<Full<Bytes>> {
        let builder = Request::builder().method(self.method).uri(&self.url);
        let builder = self.headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, *value));
        builder.body(Full::from("hi")).unwrap()
    }
}

#[derive(Clone, Debug)]
enum Outcome {
    Answer(u16, Vec<(&'static str, &'static str)>, &'static str),
    Fault(&'static str),
}

impl Outcome {
    fn reply(&self) -> Reply {
        match self {
            Outcome::Answer(status, headers, body) => {
                let reply = Reply::status(*status).body(*body);
                headers.iter().fold(reply, |reply, (name, value)| reply.header(name, value))
            }
            Outcome::Fault("reset") => Reply::reset(),
            Outcome::Fault("timeout") => Reply::stall(),
            Outcome::Fault("connect") => Reply::not_connected(),
            Outcome::Fault("closed") => Reply::close(),
            Outcome::Fault(_) => Reply::refused_stream(),
        }
    }

    fn arguments(&self) -> Vec<String> {
        match self {
            Outcome::Answer(status, headers, body) => {
                let mut out =
                    vec!["--status".to_owned(), status.to_string(), "--answer-body".to_owned(), (*body).to_owned()];
                headers
                    .iter()
                    .for_each(|(name, value)| out.extend(["--answer-header".to_owned(), format!("{name}: {value}")]));
                out
            }
            Outcome::Fault(kind) => vec!["--fault".to_owned(), (*kind).to_owned()],
        }
    }
}

fn explained(contract: &str, asked: &Asked, outcome: &Outcome, more: &[&str]) -> Ended {
    let mut arguments = vec!["explain".to_owned(), "-".to_owned(), asked.method.to_owned(), asked.url.clone()];
    asked
        .headers
        .iter()
        .for_each(|(name, value)| arguments.extend(["--header".to_owned(), format!("{name}: {value}")]));
    arguments.extend(outcome.arguments());
    arguments.extend(more.iter().map(|text| (*text).to_owned()));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    fed(contract, &arguments)
}

/// How many requests were sent, and why no more.
async fn lived(contract: &str, asked: &Asked, outcomes: &[Outcome]) -> (usize, Option<String>) {
    let contract = Contract::parse("c.toml", contract).unwrap();
    let service = testing::service(outcomes.iter().map(Outcome::reply).chain([Reply::ok("done")]).collect::<Vec<_>>());
    let answer = RetryLayer::new(contract).layer(service.clone()).oneshot(asked.request()).await;
    let stop = match &answer {
        Ok(response) => response.extensions().get::<CallReport>().and_then(CallReport::stop),
        Err(error) => error.report().and_then(CallReport::stop),
    };
    (service.seen().requests.len(), stop.map(|stop| stop.as_str().to_owned()))
}

fn sample(dice: &mut Dice) -> (Asked, Outcome) {
    let method = *dice.one(&["GET", "POST", "PUT", "DELETE", "PATCH", "QUERY"]);
    let path = *dice.one(&[
        "/orders",
        "/orders/",
        "/position",
        "/position?generation=1",
        "/stated",
        "/money",
        "/zzz",
        "/%6frders",
    ]);
    let host = *dice.one(&[
        "api.shop.example",
        "API.shop.example:443",
        "eu.shop.example",
        "shop.example",
        "elsewhere.example",
    ]);
    let headers = match dice.roll(6) {
        0 => vec![("order-key", "1")],
        1 => vec![("idempotency-key", "1")],
        2 => vec![("if-match", "\"1\"")],
        _ => vec![],
    };
    let outcome = match dice.roll(16) {
        0 => Outcome::Fault("reset"),
        1 => Outcome::Fault("timeout"),
        2 => Outcome::Fault("connect"),
        3 => Outcome::Fault("refused-stream"),
        4 => Outcome::Fault("closed"),
        _ => {
            let status = *dice.one(&[403, 404, 408, 409, 422, 429, 429, 500, 503, 503, 504]);
            let mut headers = Vec::new();
            for (name, values) in [
                ("retry-after", &["0", "3", "30", "soon", "1.5", "99999999999999999999"][..]),
                ("x-wait-ms", &["10", "15000", "25000", "-1"]),
                ("x-left", &["0", "1"]),
                ("x-reset", &["2", "40", "x"]),
                ("x-should-retry", &["true", "false", "maybe"]),
                ("x-gone", &["1"]),
            ] {
                if dice.roll(5) == 0 {
                    headers.push((name, *dice.one(values)));
                }
            }
            let body = *dice.one(&["", "{\"message\":\"a secondary limit\"}", "{\"message\":\"no\"}", "not json"]);
            Outcome::Answer(status, headers, body)
        }
    };
    (Asked { method, url: format!("https://{host}{path}"), headers }, outcome)
}

fn verdict(out: &str) -> Result<String, String> {
    let last = out.lines().last().unwrap_or_default();
    match last {
        _ if last.starts_with("=> repeated") => Ok("repeated".to_owned()),
        _ if last.starts_with("=> the answer goes") => Ok("success".to_owned()),
        _ if last.contains("nothing names it") => Ok("permanent".to_owned()),
        _ => last
            .split_once(" (")
            .and_then(|(_, rest)| rest.split_once(')'))
            .map(|(reason, _)| reason.to_owned())
            .ok_or(last.to_owned()),
    }
}

fn differs(said: &str, sent: usize, after: usize, stop: &Option<String>) -> bool {
    match said {
        "repeated" => sent != after + 1,
        "success" => sent != after || stop.is_some(),
        // A final answer at the first try has no report.
        "permanent" => sent != after || stop.as_deref().is_some_and(|stop| stop != "permanent"),
        reason => sent != after || stop.as_deref() != Some(reason),
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt() {
    let (mut dice, mut wrong) = (Dice(7), Vec::new());
    for _ in 0..250 {
        let (asked, outcome) = sample(&mut dice);
        let ended = explained(CONTRACT, &asked, &outcome, &[]);
        let (sent, stop) = lived(CONTRACT, &asked, std::slice::from_ref(&outcome)).await;
        let said = verdict(&ended.out).unwrap_or_else(|last| panic!("{last}: {}", ended.all()));
        // A host of nobody: one timeout is attempt and call, and which of them ended it is no matter.
        let nobodys = ended.out.contains("no provider has this host") && matches!(outcome, Outcome::Fault("timeout"));
        if !nobodys && differs(&said, sent, 1, &stop) {
            wrong.push(format!(
                "{} {} {:?} {outcome:?}: said {said}, sent {sent}, stop {stop:?}",
                asked.method, asked.url, asked.headers
            ));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_second_attempt() {
    let (mut dice, mut wrong, mut compared) = (Dice(11), Vec::new(), 0);
    while compared < 120 {
        let (asked, first) = sample(&mut dice);
        let (_, second) = sample(&mut dice);
        let (sent, _) = lived(CONTRACT, &asked, std::slice::from_ref(&first)).await;
        if sent != 2 {
            continue;
        }
        compared += 1;
        let unknown = match &first {
            Outcome::Fault(kind) => matches!(*kind, "reset" | "timeout" | "closed"),
            // A rejected one had no effect.
            Outcome::Answer(..) => {
                !explained(CONTRACT, &asked, &first, &[]).out.contains("rejected before it was processed")
            }
        };
        let more: &[&str] = if unknown { &["--attempt", "2", "--after-unknown"] } else { &["--attempt", "2"] };
        let ended = explained(CONTRACT, &asked, &second, more);
        let (sent, stop) = lived(CONTRACT, &asked, &[first.clone(), second.clone()]).await;
        let said = verdict(&ended.out).unwrap_or_else(|last| panic!("{last}: {}", ended.all()));
        if differs(&said, sent, 2, &stop) {
            wrong.push(format!(
                "{} {} {:?} {first:?} then {second:?}: said {said}, sent {sent}, stop {stop:?}",
                asked.method, asked.url, asked.headers
            ));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// The table beside what happens, cell by cell.
#[tokio::test(start_paused = true)]
async fn the_matrix() {
    let ended = fed(CONTRACT, &["matrix", "-", "--format", "json"]);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&ended.out).unwrap();
    let mut wrong = Vec::new();
    for row in rows {
        let name = row["operation"].as_str().unwrap().split_once(' ').unwrap().1.to_owned();
        let method: &'static str = Box::leak(row["method"].as_str().unwrap().to_owned().into_boxed_str());
        let path = if name == "any" { "zzz" } else { &name };
        let asked = Asked { method, url: format!("https://api.shop.example/{path}"), headers: vec![] };
        for (column, cell) in row["after"].as_object().unwrap() {
            let outcome = match column.parse::<u16>() {
                Ok(status) => Outcome::Answer(status, vec![], ""),
                Err(_) => match column.as_str() {
                    "connect" => Outcome::Fault("connect"),
                    "reset" => Outcome::Fault("reset"),
                    "timeout" => Outcome::Fault("timeout"),
                    "closed" => Outcome::Fault("closed"),
                    "refused-stream" => Outcome::Fault("refused-stream"),
                    _ => continue,
                },
            };
            let (sent, stop) = lived(CONTRACT, &asked, std::slice::from_ref(&outcome)).await;
            let lived = match (sent, stop.as_deref()) {
                (2, _) => "yes",
                (_, Some("no-evidence")) => "evidence",
                (_, Some("verify")) => "verify",
                _ => "no",
            };
            let said = cell["repeated"].as_str().unwrap();
            if said != lived && !(said == "success" && lived == "no") && name != "money" {
                wrong.push(format!("{name} {method} {column}: said {said}, was {lived}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A request to a host of nobody is not repeated, whatever a provider is called.
#[test]
fn a_provider_called_unknown() {
    let text = SHOP.replace("provider.shop", "provider.unknown");
    let ended = fed(&text, &["explain", "-", "GET", "https://nowhere.example/", "--status", "503"]);
    assert!(ended.out.contains("no provider has this host"), "{}", ended.out);
}

/// `others = "once"`: the provider has the host, and says that it is sent once.
#[test]
fn others_are_sent_once_by_their_providers_word() {
    let text = SHOP.replace("elsewhere = []", "elsewhere = []\nothers = \"once\"")
        + "\n[[provider.shop.operation]]\nname = \"o\"\nmatch = \"GET /a\"\n";
    let ended = fed(&text, &["explain", "-", "GET", "https://api.shop.example/zzz", "--status", "503"]);
    assert!(!ended.out.contains("no provider has this host"), "it has: {}", ended.out);
}

/// A step's line is the line that decided.
#[test]
fn the_line_of_the_pattern_that_matched() {
    let text = operation("match = [\n  \"GET /a\",\n  \"GET /b\",\n]");
    let line = text.lines().position(|line| line.contains("GET /b")).unwrap() + 1;
    let ended = fed(&text, &["explain", "-", "GET", "https://api.shop.example/b", "--status", "503"]);
    assert!(ended.out.lines().nth(1).unwrap().contains(&format!("<stdin>:{line}")), "line {line}: {}", ended.out);
}

/// Why a 500 is final there: the provider would give a repeat the saved answer. It is no business answer.
#[test]
fn a_saved_answer_is_explained() {
    let text = operation("match = \"POST /a\"\nkey = { header = \"k\", valid_for = \"24h\", replays = true }");
    let ended =
        fed(&text, &["explain", "-", "POST", "https://api.shop.example/a", "--header", "k: 1", "--status", "503"]);
    assert!(!ended.out.contains("a business answer"), "{}", ended.out);
}

/// S7: `If-Match: *` holds for the repeat as it held for the first, and so does `If-None-Match: "x"`: neither makes it fail.
/// Azure's preset says that a PUT "is repeated only with a condition that a repeat would fail"; an appended block is
/// appended twice.
#[test]
fn a_condition_that_a_repeat_would_keep() {
    let preset = std::fs::read_to_string("contracts/azure-blob.toml").unwrap();
    for header in ["if-match: *", "if-none-match: \"0x8D\""] {
        let url = "https://a.blob.core.windows.net/c/b?comp=appendblock";
        let ended = fed(&preset, &["explain", "-", "PUT", url, "--header", header, "--status", "503"]);
        assert!(ended.out.contains("(no-evidence)"), "{header}: {}", ended.out);
    }
}

/// S17: GitHub's page says not before the reset, else at least a minute: not a quarter of a second where the header cannot
/// be read.
#[test]
fn a_limit_of_github_whose_end_cannot_be_read() {
    let preset = std::fs::read_to_string("contracts/github.toml").unwrap();
    for headers in [
        &["x-ratelimit-remaining: 0"][..],
        &["x-ratelimit-remaining: 0", "x-ratelimit-reset: soon"],
        &["retry-after: soon"],
        // The first rule hides the second, which could read it.
        &["retry-after: soon", "x-ratelimit-remaining: 0", "x-ratelimit-reset: 99999999999"],
    ] {
        let mut arguments = vec!["explain", "-", "POST", "https://api.github.com/repos/a/b/issues", "--status", "403"];
        headers.iter().for_each(|header| arguments.extend(["--answer-header", header]));
        let ended = fed(&preset, &arguments);
        assert!(!ended.out.contains("250ms to 1s"), "{headers:?}: {}", ended.out);
    }
}

/// How many requests a channel of gRPC sends.
async fn called(asked: &Asked, outcome: &Outcome) -> usize {
    let contract = Contract::parse("c.toml", CONTRACT).unwrap();
    let done = Reply::status(200).header("content-type", "application/grpc").header("grpc-status", "0");
    let service = testing::service([outcome.reply(), done]);
    let request = asked.request().map(|_| tonic::body::Body::empty());
    let _ = redial::grpc::channel(service.clone(), contract).oneshot(request).await;
    service.seen().requests.len()
}

/// gRPC: each code, with and without the server's pushback, with and without a key.
#[tokio::test(start_paused = true)]
async fn codes_of_grpc() {
    let mut wrong = Vec::new();
    let codes = ["0", "1", "4", "5", "8", "13", "14", "16", "17", "99999999999", "-1", "x", ""];
    for code in codes {
        for pushback in [None, Some("100"), Some("-1"), Some("25000"), Some("soon")] {
            for key in [false, true] {
                let mut headers = vec![("content-type", "application/grpc+proto")];
                headers.extend(key.then_some(("idempotency-key", "1")));
                let asked = Asked { method: "POST", url: "https://api.shop.example/p.S/M".to_owned(), headers };
                let mut answer = vec![("content-type", "application/grpc"), ("grpc-status", code)];
                answer.extend(pushback.map(|wait| ("grpc-retry-pushback-ms", wait)));
                let outcome = Outcome::Answer(200, answer, "");
                let ended = explained(CONTRACT, &asked, &outcome, &[]);
                let sent = called(&asked, &outcome).await;
                let said = verdict(&ended.out).unwrap_or_else(|last| panic!("{last}: {}", ended.all()));
                if (said == "repeated") != (sent == 2) {
                    wrong.push(format!("{code:?} {pushback:?} key {key}: said {said}, sent {sent}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Each unit, with what a hostile server writes there: never a panic, and never sooner than a wait that can be read.
#[test]
fn units_of_waits() {
    for unit in ["epoch-s", "epoch-ms", "seconds", "ms", "iso8601"] {
        let text = operation(&format!(
            "match = \"GET /a\"\n[[provider.shop.operation.answer]]\nwhen = {{ status = 429 }}\nmeans = \"rejected\"\nbasis = \"official\"\nwait = {{ header = \"x-reset\", unit = \"{unit}\" }}"
        ));
        for value in [
            "0",
            "-1",
            "1e3",
            "nan",
            "99999999999999999999999999",
            "18446744073709551615",
            "0.5",
            "+5",
            "2026-12-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "2026-13-45T99:99:99Z",
            "",
            " 5 ",
            "5, 6",
            "\u{e9}",
        ] {
            let ended = fed(
                &text,
                &[
                    "explain",
                    "-",
                    "GET",
                    "https://api.shop.example/a",
                    "--status",
                    "429",
                    "--answer-header",
                    &format!("x-reset: {value}"),
                ],
            );
            assert!(
                matches!(ended.code, Some(0 | 2)) && !ended.err.contains("panicked"),
                "{unit} {value:?}: {}",
                ended.all()
            );
            if value.len() > 19 && value.bytes().all(|byte| byte.is_ascii_digit()) && unit != "iso8601" {
                assert!(ended.out.contains("(wait-too-long)"), "{unit} {value:?}: {}", ended.out);
            }
        }
    }
}
