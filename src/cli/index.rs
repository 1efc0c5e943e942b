//! The operations of a contract, by their names.

use std::collections::HashMap;

use crate::{
    Plan,
    contract::{
        Loaded,
        resolve::{Operation, Provider},
    },
};

/// By the names that a plan has.
pub(super) struct Index<'a>(HashMap<(&'a str, &'a str), (&'a Provider, &'a Operation)>);

impl<'a> Index<'a> {
    pub(super) fn new(loaded: &'a Loaded) -> Self {
        let all = loaded.resolved.providers.iter().flat_map(|provider| {
            let operations = provider.operations.iter();
            operations.map(move |operation| {
                ((provider.name.value.as_str(), operation.name.value.as_str()), (provider, operation))
            })
        });
        // Of two of a name, the first.
        let mut index = HashMap::new();
        for (names, found) in all {
            index.entry(names).or_insert(found);
        }
        Index(index)
    }

    /// Whose operation a request is; `None` where no provider has its host.
    pub(super) fn of(&self, plan: &Plan) -> Option<(&'a Provider, &'a Operation)> {
        self.0.get(&(plan.provider(), plan.operation())).copied()
    }
}
