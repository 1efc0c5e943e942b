//! The schema that editors read, the parser and the contracts say the same.

use jsonschema::Validator;
use redial::{FaultKind, contract::Contract};
use serde_json::Value;

use crate::{
    command,
    support::{DESIGN, SHOP},
};

fn schema() -> Value {
    serde_json::from_str(&command::fed("", &["schema"]).out).unwrap()
}

/// As an editor hands a TOML file to a schema: a date is a text.
fn json(value: &toml::Value) -> Value {
    match value {
        toml::Value::Table(table) => table.iter().map(|(key, value)| (key.clone(), json(value))).collect(),
        toml::Value::Array(array) => array.iter().map(json).collect(),
        toml::Value::Datetime(date) => date.to_string().into(),
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(value) => (*value).into(),
    }
}

#[track_caller]
fn valid(validator: &Validator, text: &str) -> bool {
    validator.is_valid(&json(&text.parse::<toml::Table>().unwrap().into()))
}

#[test]
fn what_is_read_is_valid() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let drawn = command::fed("", &["init"]).out;
    for text in [DESIGN, SHOP, &drawn, include_str!("all.toml")] {
        Contract::parse("read", text).unwrap();
        let value = json(&text.parse::<toml::Table>().unwrap().into());
        let problems: Vec<_> =
            validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(problems.is_empty(), "{problems:#?}");
    }
}

/// What is wrong in its form alone; rules that look at several values are no matter of a schema.
#[test]
fn what_is_malformed_is_neither_read_nor_valid() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for (instead_of, this) in [
        ("format = 1", ""),
        ("format = 1", "format = \"1\""),
        ("attempts  = 3", "atempts = 3"),
        ("attempts  = 3", "attempts = -1"),
        ("attempts  = 3", "attempts = \"3\""),
        ("attempts  = 3", "attempts = { maximum = 4 }"),
        ("attempt = \"2s\"", "attempt = 2"),
        ("attempt = \"2s\"", "attempt = \"2\""),
        ("attempt = \"2s\"", "attempt = \"\""),
        ("attempt = \"2s\"", "attempt = \"-1s\""),
        ("attempt = \"2s\"", "attempt = \"1s1m\""),
        ("attempt = \"2s\"", "atempt = \"2s\""),
        ("\"connect\"", "\"conect\""),
        ("[502,", "[42,"),
        ("[502,", "[\"502\","),
        ("elsewhere = []", "elsewhere = [{ where = \"home\", by = \"x\", attempts = 1 }]"),
        ("elsewhere = []", "elsewhere = {}"),
        ("elsewhere = []", "elsewhere = []\nhold = \"some\""),
        ("elsewhere = []", "elsewhere = []\nserver = { should_retry = \"no header\" }"),
        (
            "elsewhere = []",
            "elsewhere = []\nanswer = [{ when = { status = 429, after = \"all\" }, means = \"business\" }]",
        ),
        ("elsewhere = []", "elsewhere = []\nanswer = [{ when = { status = 429 }, means = \"busines\" }]"),
        ("hosts     = [", "hosts = [1, "),
    ] {
        let text = SHOP.replacen(instead_of, this, 1);
        assert!(Contract::parse("refused", text.as_str()).is_err(), "{this}");
        assert!(!valid(&validator, &text), "the schema takes what the parser refuses: {this}");
    }
}

#[test]
fn names_are_the_engines() {
    let text = schema().to_string();
    for kind in FaultKind::ALL {
        assert!(text.contains(&format!("\"{kind}\"")), "{kind}");
        let listed = SHOP.replace("\"connect\"", &format!("\"{kind}\""));
        // `unclassified` is known, and refused by a rule.
        assert_eq!(Contract::parse("x", listed).is_ok(), kind != FaultKind::Unclassified, "{kind}");
    }
}
