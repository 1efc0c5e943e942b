//! For which requests two contracts are compared.

use std::collections::HashMap;

use http::Method;

use crate::{
    cli::sample,
    contract::{Loaded, resolve::Provider},
};

/// A pattern of either contract on one host.
pub(super) struct Pattern {
    pub(super) provider: String,
    pub(super) host: String,
    pub(super) path: String,
    pub(super) shown: String,
    /// Named with it, by either contract. Empty: none, and it is for any.
    named: Vec<Method>,
}

impl Pattern {
    /// Each method to ask for, and whether it is always shown.
    pub(super) fn methods(&self) -> Vec<(Method, bool)> {
        let own = if self.named.is_empty() { vec![Method::GET, Method::POST] } else { self.named.clone() };
        let others = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "QUERY"];
        let others = others.into_iter().filter_map(|name| Method::from_bytes(name.as_bytes()).ok());
        let others: Vec<_> = others.filter(|method| !own.contains(method)).map(|method| (method, false)).collect();
        own.into_iter().map(|method| (method, true)).chain(others).collect()
    }
}

/// Each pattern of either contract, once, on the hosts that tell them apart.
pub(super) fn patterns(old: &Loaded, new: &Loaded) -> Vec<Pattern> {
    let mut found: Vec<Pattern> = Vec::new();
    let mut known: HashMap<(String, String), usize> = HashMap::new();
    for (one, other) in [(old, new), (new, old)] {
        for provider in &one.resolved.providers {
            let same = named(other, &provider.name.value);
            for host in sample::telling_hosts(provider, same) {
                for operation in &provider.operations {
                    for (method, path, shown) in sample::patterns(operation) {
                        let at = *known.entry((host.to_owned(), path.clone())).or_insert_with(|| {
                            let (provider, host) = (provider.name.value.clone(), host.to_owned());
                            found.push(Pattern { provider, host, path, shown, named: Vec::new() });
                            found.len() - 1
                        });
                        let named = &mut found[at].named;
                        named.extend(method.filter(|method| !named.contains(method)));
                    }
                }
            }
        }
    }
    found
}

pub(super) fn named<'a>(loaded: &'a Loaded, name: &str) -> Option<&'a Provider> {
    loaded.resolved.providers.iter().find(|provider| provider.name.value == name)
}
