//! Every example runs, as a reader would run it, and says what it is there to show.

use std::{
    env, fs,
    path::Path,
    process::{Command, Output},
    sync::Mutex,
    thread,
};

/// An example, its arguments, and lines of its output, in their order.
type Example = (&'static str, &'static [&'static str], &'static [&'static str]);

const EXAMPLES: &[Example] = &[
    (
        "attempt_spans",
        &[],
        &[
            "\t\t ->  error.type: String(Owned(\"503\"))",
            "\t\t ->  http.request.resend_count: I64(1)",
            "\t\t ->  error.type: String(Owned(\"reset\"))",
            "\t\t ->  http.request.resend_count: I64(2)",
            "\t\t ->  http.response.status_code: I64(200)",
            "\tName         : order",
            "200 OK",
            "the server saw 00-…",
            "the server saw 00-…",
            "the server saw 00-…",
        ],
    ),
    (
        "custom_judge",
        &[],
        &[
            "PUT answered 409 with x-other: 2 attempts, then 200",
            "POST answered 409 with x-other: 1 attempts, then 409, stopped: no-evidence",
            "POST answered 403 with x-throttled: 2 attempts, then 200",
            "POST answered 403 with x-other: 1 attempts, then 403",
        ],
    ),
    ("fixed_body", &[], &["attempt 1: 9 bytes", "attempt 2: 9 bytes", "200 OK after 2 attempts", "b\"answered 200\""]),
    ("grpc", &[], &["b\"placed: order 7\" after 3 calls", "InvalidArgument after 1 call"]),
    ("hyper_client", &[], &["200 OK after 3 attempts", "b\"answered 200\""]),
    ("hyper_one_call", &[], &["200 OK after 3 attempts: b\"an order\""]),
    (
        "layer_order",
        &[],
        &[
            "The right order: signed and traced once an attempt",
            "  attempt 1: /, signature 1",
            "  attempt 2: /, signature 2",
            "  attempt 3: /, signature 3",
            "  200 OK after 3 attempts",
            "The signer above: every attempt has the first one's signature",
            "  attempt 1: /, signature 4",
            "  attempt 2: /, signature 4",
            "  attempt 3: /, signature 4",
            "Redirects above: each hop is a call of its own, with its own attempts",
            "  attempt 1: /",
            "  attempt 2: /",
            "  attempt 1: /moved",
            "  attempt 2: /moved",
            "  200 OK after 2 attempts of the last hop",
            "Redirects below: an attempt is the whole chain, and starts it anew",
            "  attempt 1: /",
            "  attempt 1: /moved",
            "  attempt 2: /",
            "  attempt 2: /moved",
            "  200 OK after 2 attempts of the chain",
            "  503 Service Unavailable, and no second attempt: deadline",
        ],
    ),
    // Long by default.
    (
        "outage",
        &["--seconds", "3", "--metrics", "--svg", concat!(env!("CARGO_TARGET_TMPDIR"), "/outage.svg")],
        &[
            "healthy…",
            "outage…",
            "recovery…",
            "The naive loop brought…",
            "redial brought…",
            "and repeated no write.",
            "# TYPE redial_calls_total counter",
            "The picture is in…",
        ],
    ),
    (
        "prometheus",
        &[],
        &[
            "# TYPE redial_calls_total counter",
            "redial_calls_total{provider=\"shop\",operation=\"orders\",outcome=\"success\"} 2",
            "redial_wait_seconds_count{provider=\"shop\",operation=\"orders\",by=\"policy\"} 2",
        ],
    ),
    (
        "recover",
        &[],
        &[
            "made at the second attempt: 201 Created, \"answered 201\"",
            "a topic that is refused: 422 Unprocessable Entity, \"answered 422\"",
            "a server that is overloaded: AI server unavailable, after 3 attempts; perhaps done: true, cause: false",
            "a server that is gone: AI server unavailable, after 3 attempts; perhaps done: false, cause: true",
            "the quiz of the day: 200 OK, \"yesterday's quiz\"",
        ],
    ),
    (
        "request_options",
        &[],
        &[
            "as the policy says: 3 attempts, stopped: attempts",
            "never retried: 1 attempts, stopped: attempts",
            "at most two attempts: 2 attempts, stopped: attempts",
            "a POST without evidence: 1 attempts, stopped: no-evidence",
            "a POST with a statement: 3 attempts, stopped: attempts",
        ],
    ),
    (
        "retry_block",
        &[],
        &[
            "attempt 1",
            "attempt 2",
            "attempt 3",
            "answered 200",
            "attempt 1, with a token",
            "answered 200, answered 200",
            "stopped: permanent",
            "404 after 1 attempt",
            "stopped: no-evidence",
        ],
    ),
    (
        "reqwest_client",
        &[],
        &[
            "200 OK after 3 attempts: an order",
            "  PUT /orders/7, the whole body: true",
            "  PUT /orders/7, the whole body: true",
            "  PUT /orders/7, the whole body: true",
        ],
    ),
    (
        "reqwest_middleware",
        &[],
        &["200 OK after 2 attempts: an order", "after 3 attempts: connect true, timeout false"],
    ),
    (
        "routes",
        &[],
        &[
            "GET /orders/42: 200 after 2 attempts",
            "POST /orders with a key: 200 after 2 attempts",
            "POST /orders: 503 after 1 attempts, stopped: no-evidence",
            "POST /refunds: 503 after 1 attempts",
            "unmatched: 1",
        ],
    ),
    // Long by default.
    ("soak", &["--minutes", "0.08"], &["unsafe requests that took effect twice: 0 of …", "nothing is missing"]),
    (
        "testing_kit",
        &[],
        &[
            "over sockets: 200 OK after 3 attempts",
            "  1. PUT /orders/7?draft=1, the whole body: true",
            "  2. PUT /orders/7?draft=1, the whole body: true",
            "  3. PUT /orders/7?draft=1, the whole body: true",
            "without sockets: 429 Too Many Requests after 1 request",
            "  failed: no-evidence",
        ],
    ),
    ("tower_retry", &[], &["200 OK after 2 attempts", "each with the whole body: true"]),
    (
        "two_services",
        &[],
        &[
            "they know nothing of each other                                 3      9",
            "InboundLayer, but nobody writes what it reads                   3      9",
            "OutboundHeadersLayer and InboundLayer: the deadline             3      9",
            "the same, once_when_caller_retries                              3      5",
        ],
    ),
    // The page of the features' weight is what the tree says.
    ("weigh", &["--check"], &["| none: the core | …", "| `cli` | …"]),
];

#[test]
fn every_example_runs_and_shows_its_point() {
    // Several at once: most of what they do is to wait.
    let rest = Mutex::new(names().into_iter());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(name) = rest.lock().expect("a lock").next() else { break };
                    runs_and_shows_its_point(&name);
                }
            });
        }
    });
}

fn runs_and_shows_its_point(name: &str) {
    let Some((_, arguments, lines)) = EXAMPLES.iter().find(|(listed, ..)| *listed == name) else {
        panic!("the example `{name}` is new: say here what it prints");
    };
    let output = run(name, arguments);
    let printed = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{printed}\n{complaints}", output.status);
    assert!(!printed.trim().is_empty(), "{name} prints nothing\n{complaints}");
    // In their order, and other lines may stand between.
    let mut rest = printed.lines();
    for line in *lines {
        assert!(rest.any(|printed| is(printed, line)), "{name} does not print, or not there: {line}\n{printed}");
    }
}

/// A line, or with `…` its beginning.
fn is(printed: &str, line: &str) -> bool {
    line.strip_suffix('…').map_or(printed == line, |beginning| printed.starts_with(beginning))
}

/// All of the folder, so that none is forgotten: its files, and its folders with a `main.rs`.
fn names() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let entries = fs::read_dir(folder).expect("examples").map(|entry| entry.expect("an entry").path());
    let mut names: Vec<_> = entries
        .filter(|entry| entry.join("main.rs").exists() || entry.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|entry| Some(entry.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    assert!(!names.is_empty());
    names
}

fn run(name: &str, arguments: &[&str]) -> Output {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        // All of them, as the test command has them: nothing is built twice.
        .args(["run", "--quiet", "--all-features", "--example", name, "--"])
        .args(arguments)
        .output()
        .expect("cargo")
}
