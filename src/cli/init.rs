//! `redial init`

use super::{End, arguments::Init, terminal::Terminal};
use crate::contract::Contract;

/// What is printed, with the places of what the caller gave.
const TEMPLATE: &str = include_str!("init.toml");

pub(super) fn run(command: &Init, terminal: &Terminal) -> End {
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date().to_string();
    // A page has a host of its own, and not all of them.
    let page = format!("https://{}/docs", command.host.trim_start_matches("*."));
    let text = TEMPLATE.replace("2026-11-30", &today).replace("https://api.shop.example/docs", &page);
    let text = text.replace("api.shop.example", &command.host);
    let text = text.replace("provider.shop", &format!("provider.{}", command.provider));
    // What is drawn up must be one: a name or a host that cannot be is found here, and not at the first check.
    match Contract::parse("init", text.clone()) {
        Ok(_) => {
            terminal.out(&text);
            End::Kept
        }
        Err(error) => {
            terminal.err(&format!("{error}\n"));
            End::Unreadable
        }
    }
}
