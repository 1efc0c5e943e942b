use redial::contract::{Contract, ContractError};

/// The example of the format's design, whole.
pub const DESIGN: &str = include_str!("design.toml");

/// A provider that keeps every rule, to be changed.
pub const SHOP: &str = r#"format = 1

[provider.shop]
hosts     = ["api.shop.example"]
contract  = { url = "https://shop.example/docs", reviewed = 2026-11-30, owner = "platform" }
timeouts  = { attempt = "2s", total = "10s" }
attempts  = 3
backoff   = { initial = "500ms", multiplier = 2.0, max = "5s" }
transient = { status = [502, 503, 504], faults = ["connect", "reset", "timeout"] }
elsewhere = []
fallback  = "none"
"#;

pub fn contract(text: &str) -> Contract {
    Contract::parse("shop.toml", text).unwrap()
}

#[track_caller]
pub fn refused(text: &str) -> ContractError {
    Contract::parse("shop.toml", text).expect_err("a contract that is refused")
}

/// The only problem of a contract that is refused: rule, line, message and help in one text.
#[track_caller]
pub fn the_problem(text: &str) -> String {
    let error = refused(text);
    let [finding] = error.findings() else { panic!("one problem: {error}") };
    format!("{}:{}: {finding} ({})", finding.line(), finding.column(), finding.mend().unwrap_or_default())
}
