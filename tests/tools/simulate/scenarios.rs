//! Scenario files: those that ship, and those that are refused.

use std::time::Duration;

use redial::simulate::{Scenario, TroubleKind};

#[test]
fn those_that_ship() {
    let names: Vec<_> = Scenario::names().collect();
    assert_eq!(names, ["brown-out", "outage", "random-failures", "rate-limit"]);
    for name in names {
        let scenario = Scenario::preset(name).unwrap();
        assert_eq!(scenario.name, name);
        assert_eq!((scenario.clients, scenario.rate, scenario.server.capacity), (1000, 10.0, 12_000.0));
        assert_eq!((scenario.trouble.from, scenario.trouble.until), (Duration::from_secs(30), Duration::from_secs(50)));
    }
    assert_eq!(Scenario::preset("weather"), None);
}

#[test]
fn every_value_can_be_said() {
    let text = r#"
        name = "x"
        seed = 1
        clients = 2
        rate = 0.5
        length = "1m30s"
        server = { capacity = 3, queue = "250ms", refusal = 0.5, latency = "5ms" }
        trouble = { kind = "failures", from = "1s", until = "2s", share = 0.5, status = 502 }
    "#;
    let scenario = Scenario::parse(text).unwrap();
    assert_eq!((scenario.seed, scenario.clients, scenario.rate), (1, 2, 0.5));
    assert_eq!(scenario.length, Duration::from_secs(90));
    assert_eq!(scenario.server.queue, Duration::from_millis(250));
    assert_eq!(scenario.trouble.kind, TroubleKind::Failures { share: 0.5, status: 502 });
}

#[test]
fn what_is_refused_says_why() {
    let trouble = |rest: &str| format!("name = \"x\"\ntrouble = {{ from = \"1s\", until = \"2s\", {rest} }}\n");
    let cases = [
        ("", "missing field `name`"),
        ("name = \"x\"", "trouble"),
        (&trouble("kind = \"weather\""), "unknown variant `weather`"),
        (&trouble("kind = \"brown-out\""), "`trouble.capacity` is missing"),
        (&trouble("kind = \"brown-out\", capacity = 1.5"), "between 0 and 1"),
        (&trouble("kind = \"brown-out\", capacity = nan"), "between 0 and 1"),
        (&trouble("kind = \"outage\", share = 0.5"), "`trouble.share` means nothing"),
        (&trouble("kind = \"outage\", status = 200"), "400 to 599"),
        (&trouble("kind = \"failures\", share = 0"), "above 0"),
        (&trouble("kind = \"rate-limit\", limit = 5, retry_after = \"1500ms\""), "whole seconds"),
        (&trouble("kind = \"outage\", until = \"2s\""), "duplicate key"),
        (&trouble("kind = \"outage\"").replace("2s", "1s"), "`trouble.until`: after"),
        (&trouble("kind = \"outage\"").replace("2s", "2"), "duration"),
        (&format!("colour = 1\n{}", trouble("kind = \"outage\"")), "unknown field `colour`"),
        (&format!("clients = 0\n{}", trouble("kind = \"outage\"")), "`clients`"),
        (&format!("rate = inf\n{}", trouble("kind = \"outage\"")), "`rate`"),
        (&format!("rate = 10000\n{}", trouble("kind = \"outage\"")), "50 million"),
        (&format!("length = \"1h\"\nrate = 14\n{}", trouble("kind = \"outage\"")), "50 million"),
    ];
    for (text, words) in cases {
        let refused = Scenario::parse(text).expect_err(text);
        assert!(refused.to_string().contains(words), "{text}\n{refused}");
    }
}
