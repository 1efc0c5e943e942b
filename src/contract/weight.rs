//! What a contract grows to. A setting of a provider holds for each of its operations, and each host has all of its
//! routes: a small file can say what takes gigabytes.

use super::{
    model::Operation,
    place::At,
    problem::Problem,
    read::{Keys, OneOrMore, Read},
    settings::Settings,
};
use crate::redact::Redacted;

/// What a value weighs beside its text.
const NODE: u64 = 64;
/// What a route weighs beside its texts.
const ROUTE: u64 = 256;
/// The most that all providers of a contract may weigh: about ten thousand operations of a provider with usual settings.
const MOST: u64 = 64 * 1024 * 1024;

/// Of a value, with what it holds.
pub(super) fn of<T: Read>(value: &Option<At<T>>) -> u64 {
    value.as_ref().map_or(0, entry)
}

/// Of one that is there.
pub(super) fn entry<T: Read>(value: &At<T>) -> u64 {
    let written = value.place.end.saturating_sub(value.place.start);
    NODE + u64::from(written).max(value.value.weight())
}

/// What a provider says, and what becomes of it.
pub(super) struct Multiplied<'a> {
    pub(super) name: &'a At<String>,
    /// By the provider and by its file: what every operation inherits.
    pub(super) inherited: [&'a Settings; 2],
    pub(super) operations: &'a [At<Operation>],
    pub(super) hosts: Option<&'a At<OneOrMore<String>>>,
    /// The address that stands in as the reason of official rules.
    pub(super) url: Option<&'a At<String>>,
}

impl Multiplied<'_> {
    /// Adds it to what the contract weighs.
    ///
    /// # Errors
    ///
    /// The problem, where that is too much.
    pub(super) fn add_to(&self, all: &mut u64) -> Result<(), Problem> {
        // And the rest.
        let operations = self.operations.len() as u64 + 1;
        let rules = |settings: &Settings| settings.answer.as_ref().map_or(0, |answers| answers.value.len() as u64);
        let inherited: u64 = self.inherited.iter().map(|settings| Keys::weight(*settings)).sum();
        let own_rules: u64 = self.operations.iter().map(|operation| rules(&operation.settings)).sum();
        let all_rules = own_rules + operations * self.inherited.iter().map(|settings| rules(settings)).sum::<u64>();
        let url = self.url.map_or(0, |url| url.value.len() as u64);
        let settings = operations * (inherited + self.name.value.len() as u64) + all_rules * url;

        let matches = || self.operations.iter().flat_map(|operation| &operation.matches).flat_map(|all| all.iter());
        let length =
            |texts: &mut dyn Iterator<Item = &At<String>>| texts.map(|text| text.value.len() as u64).sum::<u64>();
        let hosts = || self.hosts.iter().flat_map(|hosts| hosts.iter());
        let (hosts_count, matches_count) = (hosts().count() as u64, matches().count() as u64 + 2);
        let routes =
            hosts_count * (length(&mut matches()) + ROUTE * matches_count) + matches_count * length(&mut hosts());

        *all = all.saturating_add(settings).saturating_add(routes);
        if *all <= MOST {
            return Ok(());
        }
        let (what, help) = if settings > routes {
            ("settings", "say less for all of them, or make several contracts of it")
        } else {
            ("hosts", "write `*.suffix` for hosts of one kind, or make several contracts of it")
        };
        let message = format!("the {what} of `{}` are too many for its {operations} operations", Redacted(self.name));
        Err(Problem::unreadable(self.name.place, message).label("each operation has them all").help(help))
    }
}
