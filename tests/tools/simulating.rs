//! `redial simulate`

use redial::simulate::Scenario;

use crate::command::{Folder, SHOP};

fn shop() -> Folder {
    Folder::with(&[("shop.toml", SHOP)])
}

/// Few enough clients for a test.
const FEW: [&str; 4] = ["simulate", "shop.toml", "--clients", "100"];

#[test]
fn the_four_that_ship() {
    let ended = shop().run(&FEW);
    assert_eq!(ended.code, 0, "{}", ended.err);
    for name in Scenario::names() {
        assert!(ended.out.contains(&format!("{name}: 100 clients")), "{}", ended.out);
    }
    // The progress of a long run is for terminals, as colours are.
    assert_eq!(ended.err, "");
    assert!(!ended.out.contains('\x1b'), "{}", ended.out);
    insta::assert_snapshot!(ended.out);
}

#[test]
fn the_seed_decides() {
    let folder = shop();
    let run = |seed: &str| folder.run(&[&FEW[..], &["--scenario", "outage", "--seed", seed]].concat()).out;
    assert_eq!(run("1"), run("1"));
    assert_ne!(run("1"), run("2"));
}

#[test]
fn figures_for_machines() {
    let folder = shop();
    let json = |more: &[&str]| -> serde_json::Value {
        let ended = folder.run(&[&FEW[..], &["--scenario", "brown-out", "--format", "json"], more].concat());
        assert_eq!(ended.code, 0, "{}", ended.err);
        serde_json::from_str(&ended.out).unwrap()
    };
    let value = json(&[]);
    let runs = value[0]["runs"].as_array().unwrap();
    let load = |at: usize| runs[at]["load_factor"].as_f64().unwrap();
    assert_eq!(runs[0]["strategy"], "no retry");
    assert!(load(0) == 1.0 && load(1) > 2.5 && (1.0..1.2).contains(&load(2)), "{runs:?}");
    let goodput = |at: usize| runs[at]["goodput"].as_f64().unwrap();
    assert!(goodput(1) < 0.1 && goodput(2) > 0.4, "{runs:?}");
    // What has no evidence is sent once; with a key it is repeated.
    let of = |value: serde_json::Value| value[0]["runs"][2]["load_factor"].as_f64().unwrap();
    assert_eq!(of(json(&["--operation", "orders.create"])), 1.0);
    assert!(of(json(&["--operation", "orders.create", "--header", "idempotency-key: 1"])) > 1.0);
    assert_eq!(of(json(&["--operation", "orders.cancel", "--header", "idempotency-key: 1"])), 1.0);
}

/// Figures as those of no retry are no mistake.
#[test]
fn why_nothing_is_repeated() {
    let folder = shop();
    let run = |more: &[&str]| folder.run(&[&FEW[..], &["--scenario", "outage"], more].concat()).out;
    let note = "nothing says that a repeat of this POST is safe";
    assert!(run(&["--operation", "orders.create"]).contains(note));
    assert!(!run(&["--operation", "orders.create", "-H", "idempotency-key: 1"]).contains(note));
    assert!(run(&["--operation", "orders.cancel"]).ends_with("orders.cancel is never repeated\n"));
}

#[test]
fn the_picture_of_a_scenario_of_ones_own() {
    let folder = shop();
    folder.write(
        "mine.toml",
        "name = \"a lunch break\"\nclients = 10\nlength = \"20s\"\n\
         trouble = { kind = \"silence\", from = \"5s\", until = \"10s\" }\n",
    );
    let ended = folder.run(&["simulate", "shop.toml", "--scenario", "mine.toml", "--svg", "mine.svg"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.out.contains("from 5s to 10s, no request is answered"), "{}", ended.out);
    let svg = folder.read("mine.svg");
    for text in ["a lunch break: 10 clients", "no retry", "3 attempts at once", "shop", "seconds"] {
        assert!(svg.contains(text), "{text}");
    }
    let ended = folder.run(&["simulate", "shop.toml", "--scenario", "mine.toml", "--svg", "no/such/folder.svg"]);
    assert!(ended.code == 2 && ended.err.contains("no/such/folder.svg"), "{}", ended.err);
}

#[test]
fn what_cannot_be_run() {
    let folder = shop();
    let two = SHOP.to_owned() + &SHOP.replace("format = 1", "").replace("shop", "mail");
    folder.write("two.toml", two);
    folder.write("large.toml", vec![b'#'; 70_000]);
    folder.write("bytes.toml", [0xff, 0xfe]);
    folder.write("broken.toml", SHOP.replace("\"2s\"", "\"2d\""));
    for (arguments, code, words) in [
        (&["two.toml"][..], 2, "with --provider: shop, mail"),
        (&["two.toml", "--provider", "post"], 2, "no provider `post`"),
        (&["shop.toml", "--operation", "x"], 2, "it has orders.create, orders.cancel, any"),
        (&["shop.toml", "--svg", "x.svg"], 2, "name it with --scenario"),
        (&["shop.toml", "--scenario", "weather"], 2, "those that ship are brown-out, outage"),
        (&["shop.toml", "--scenario", "large.toml"], 2, "`large.toml` is too large: more than 65536 bytes"),
        (&["shop.toml", "--scenario", "bytes.toml"], 2, "`bytes.toml` is not UTF-8"),
        (&["shop.toml", "--scenario", "two.toml"], 2, "`two.toml`: the scenario cannot be run"),
        (&["absent.toml"], 2, "absent.toml"),
        (&["broken.toml"], 1, "S8"),
        (&["shop.toml", "--clients", "0"], 2, "--clients"),
    ] {
        let ended = folder.run(&[&["simulate"], arguments].concat());
        assert!(ended.code == code && ended.err.contains(words), "{arguments:?}: {} {}", ended.code, ended.err);
        assert_eq!(ended.out, "", "{arguments:?}");
    }
}
