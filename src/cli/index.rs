//! The operations of a contract, by the routes that requests take to them. Names would not do: a provider may be called
//! `unknown`, and an operation `any`.

use std::collections::HashMap;

use http::Request;

use crate::{
    RequestHead,
    contract::{
        Loaded,
        place::Place,
        resolve::{Operation, Provider},
        routing::REST,
    },
    policy::routes::{
        pattern::{self, Authority, Route},
        request_host,
    },
};

/// Whose a request is.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) provider: &'a Provider,
    pub(super) operation: &'a Operation,
    /// The pattern that matched; for the rest of a provider, its name.
    pub(super) place: Place,
}

pub(super) struct Index<'a> {
    loaded: &'a Loaded,
    /// By host and pattern, as they are written.
    routes: HashMap<&'a str, HashMap<&'a str, Found<'a>>>,
}

impl<'a> Index<'a> {
    pub(super) fn new(loaded: &'a Loaded) -> Self {
        let mut routes: HashMap<&str, HashMap<&str, Found<'_>>> = HashMap::new();
        for provider in &loaded.resolved.providers {
            for host in &provider.hosts {
                let patterns = routes.entry(host.value.as_str()).or_default();
                for operation in &provider.operations {
                    let rest = REST.iter().filter(|_| operation.is_rest).map(|text| (*text, operation.name.place));
                    let own = operation.matches.iter().map(|text| (text.value.as_str(), text.place));
                    for (text, place) in own.chain(rest) {
                        // Of two that are the same, the first has it.
                        patterns.entry(text).or_insert(Found { provider, operation, place });
                    }
                }
            }
        }
        Index { loaded, routes }
    }

    /// Whose operation a request is; `None` where no pattern matches it.
    pub(super) fn of(&self, request: &Request<()>) -> Option<Found<'a>> {
        let route = self.loaded.routes().route_of(&RequestHead::of(request))?;
        let (host, pattern) = route.split_once(' ')?;
        self.routes.get(host)?.get(pattern).copied()
    }

    /// The provider that has a request's host, whether one of its operations matches or not.
    pub(super) fn of_host(&self, request: &Request<()>) -> Option<&'a Provider> {
        let head = RequestHead::of(request);
        let (host, port) = request_host(&head)?;
        let host = pattern::normal(host);
        let hosts = self.loaded.resolved.providers.iter().flat_map(|provider| {
            let hosts = provider.hosts.iter();
            hosts.map(move |host| (provider, host))
        });
        let fits = hosts.filter_map(|(provider, written)| {
            // The more specific one has it.
            let rank = match Route::parse(&format!("{} /", written.value)).ok()?.authority {
                Authority::HostPort(name, number) => (name == host && Some(number) == port).then_some(usize::MAX)?,
                Authority::Host(name) => (name == host).then_some(usize::MAX - 1)?,
                Authority::Suffix(suffix) => {
                    (host.len() > suffix.len() && host.ends_with(&suffix)).then_some(suffix.len())?
                }
                Authority::Any => return None,
            };
            Some((rank, provider))
        });
        fits.max_by_key(|(rank, _)| *rank).map(|(_, provider)| provider)
    }
}
