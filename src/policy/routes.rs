//! One policy per host, method and path.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use http::header::HOST;

use super::{Outcome, Plan, Policy, RequestHead, StandardPolicy, Verdict, operation::Operation};
use crate::{observe, redact::Redacted};

use pattern::{Authority, Route};
use table::{Table, Target};

pub(crate) mod pattern;
mod table;

/// Picks a policy by host, method and path; a request that no route matches gets the default, which never repeats.
///
/// A route is `host METHOD /path`, each part but the path optional from the left:
///
/// | part | forms | more specific first |
/// | --- | --- | --- |
/// | host | `api.example.com:8443`, `api.example.com`, `*.example.com`, or none | in this order; the longer suffix |
/// | path | `/orders/42`, `/orders/{id}:cancel`, `/orders/{id}`, `/orders/{*rest}` | segment by segment from the left: literal, partly literal, parameter, the rest |
/// | method | `GET` or none | in this order |
///
/// Of the routes that match, the most specific wins: by host, then by path, then by method. Where two could tie, they
/// are refused when the routes are built. Hosts are compared without regard to case; a host without a port stands for
/// any port. Paths are compared as they are sent, percent-encoding included, without the query; `{*rest}` stands for at
/// least one character.
///
/// Policies of one provider (by its name) that were given no budget and no hold of their own share one of each within
/// these routes.
///
/// ```
/// use redial::{Routes, StandardPolicy, Timeouts, Transient};
/// use std::time::Duration;
///
/// let seconds = Duration::from_secs;
/// let timeouts = Timeouts { attempt: seconds(2), total: seconds(10) };
/// let reads = StandardPolicy::builder("shop", timeouts, Transient::usual()).operation("read").build()?;
/// let orders = StandardPolicy::builder("shop", timeouts, Transient::usual()).operation("order").attempts(2).build()?;
///
/// let routes = Routes::builder(StandardPolicy::unretried("other", seconds(30))?)
///     .route("shop.example GET /{*any}", reads)
///     .route("shop.example POST /orders", orders)
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Routes(Arc<Inner>);

struct Inner {
    default: StandardPolicy,
    hosts: Hosts,
    unmatched: AtomicU64,
}

impl Routes {
    /// Begins a set of routes. `default` is for requests that none of them matches (D27): it must not repeat
    /// ([`StandardPolicy::unretried`]), since nobody said that they may be repeated.
    pub fn builder(default: StandardPolicy) -> RoutesBuilder {
        RoutesBuilder { default, routes: Vec::new() }
    }

    /// How many requests no route matched. Each is also a DEBUG event.
    pub fn unmatched(&self) -> u64 {
        self.0.unmatched.load(Ordering::Relaxed)
    }

    fn find(&self, head: &RequestHead<'_>) -> Option<&Target> {
        let (method, path) = (head.method(), head.uri().path());
        self.0.hosts.first(request_host(head), |table| table.find(method, path))
    }
}

#[cfg(feature = "contract")]
impl Routes {
    /// The policy of a request, without counting it.
    pub(crate) fn look_up(&self, head: &RequestHead<'_>) -> &StandardPolicy {
        self.find(head).map_or(&self.0.default, |target| &target.policy)
    }

    /// The route that a request takes, as it was written; `None`: it takes none.
    #[cfg(feature = "cli")]
    pub(crate) fn route_of(&self, head: &RequestHead<'_>) -> Option<&str> {
        self.find(head).map(|target| target.route.as_str())
    }
}

/// The tables, by host. Keys are in lower case.
#[derive(Default)]
struct Hosts {
    exact: HashMap<String, Ports>,
    suffixes: HashMap<String, Table>,
    any: Table,
}

#[derive(Default)]
struct Ports {
    named: HashMap<u16, Table>,
    any: Table,
}

impl Hosts {
    fn entry(&mut self, authority: Authority) -> &mut Table {
        match authority {
            Authority::HostPort(host, port) => self.exact.entry(host).or_default().named.entry(port).or_default(),
            Authority::Host(host) => &mut self.exact.entry(host).or_default().any,
            Authority::Suffix(suffix) => self.suffixes.entry(suffix).or_default(),
            Authority::Any => &mut self.any,
        }
    }

    /// Asks the tables that a request to this host may stand in, the most specific first.
    fn first<'a, T>(&'a self, host: Option<(&str, Option<u16>)>, find: impl Fn(&'a Table) -> Option<T>) -> Option<T> {
        let (host, port) = host.unwrap_or_default();
        let host = pattern::normal(host);
        let ports = self.exact.get(&*host);
        let named = ports.zip(port).and_then(|(ports, port)| ports.named.get(&port));
        // A suffix stands for at least one character.
        let mut suffixes = host.match_indices('.').filter(|(dot, _)| *dot > 0).map(|(dot, _)| &host[dot..]);
        named
            .and_then(&find)
            .or_else(|| find(&ports?.any))
            .or_else(|| suffixes.find_map(|suffix| find(self.suffixes.get(suffix)?)))
            .or_else(|| find(&self.any))
    }
}

/// Where a request goes: its target's host, or that of its `Host` header.
pub(crate) fn request_host<'a>(head: &RequestHead<'a>) -> Option<(&'a str, Option<u16>)> {
    let uri = head.uri();
    if let Some(host) = uri.host() {
        let default = match uri.scheme_str() {
            Some("https") => Some(443),
            Some("http") => Some(80),
            _ => None,
        };
        return Some((host, uri.port_u16().or(default)));
    }
    let host = head.headers().get(HOST)?.to_str().ok()?;
    Some(pattern::split_port(host))
}

impl Policy for Routes {
    fn plan(&self, head: &RequestHead<'_>) -> Plan {
        match self.find(head) {
            Some(target) => target.policy.plan(head),
            None => {
                self.0.unmatched.fetch_add(1, Ordering::Relaxed);
                let plan = self.0.default.plan(head);
                observe::unmatched(&plan, head.method(), head.uri());
                plan
            }
        }
    }

    fn judge(&self, plan: &Plan, outcome: &Outcome<'_>) -> Verdict {
        // The plan holds the operation that the route chose.
        plan.operation.judge(plan, outcome)
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes")
            .field("default", &self.0.default.provider())
            .field("hosts", &self.0.hosts.exact.len())
            .field("unmatched", &self.unmatched())
            .finish_non_exhaustive()
    }
}

/// Builds [`Routes`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct RoutesBuilder {
    default: StandardPolicy,
    routes: Vec<(String, StandardPolicy)>,
}

impl RoutesBuilder {
    /// Requests that match `host METHOD /path` get this policy.
    pub fn route(mut self, route: impl Into<String>, policy: StandardPolicy) -> Self {
        self.routes.push((route.into(), policy));
        self
    }

    /// Builds the routes.
    ///
    /// # Errors
    ///
    /// [`RoutesError`], naming every route that cannot be read or that another one ties with, and a default that
    /// repeats.
    pub fn build(self) -> Result<Routes, RoutesError> {
        let mut problems = Vec::new();
        if self.default.max_attempts() > 1 {
            problems.push(format!(
                "the default policy `{} {}` repeats requests that no route names: use `StandardPolicy::unretried` (S1)",
                self.default.provider(),
                self.default.operation(),
            ));
        }
        let mut hosts = Hosts::default();
        let mut providers: HashMap<String, Arc<Operation>> = HashMap::new();
        for (text, policy) in self.routes {
            // What one operation of a provider was told or has spent holds for its others (S17, S20).
            let policy = match providers.get(policy.provider()) {
                Some(first) => policy.sharing(first),
                None => {
                    providers.insert(policy.provider().to_owned(), Arc::clone(policy.shared()));
                    policy
                }
            };
            let added =
                Route::parse(&text).and_then(|route| hosts.entry(route.authority.clone()).insert(route, &text, policy));
            if let Err(problem) = added {
                problems.push(format!("the route `{}` {problem}", Redacted(&text)));
            }
        }
        if problems.is_empty() {
            Ok(Routes(Arc::new(Inner { default: self.default, hosts, unmatched: AtomicU64::new(0) })))
        } else {
            Err(RoutesError { problems })
        }
    }
}

/// Routes that cannot be built: names every one at fault, and how to mend it.
#[derive(Clone, PartialEq, Eq)]
pub struct RoutesError {
    problems: Vec<String>,
}

impl RoutesError {
    /// What is wrong, one text a problem.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().map(String::as_str)
    }
}

impl fmt::Display for RoutesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the routes cannot be built:")?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl fmt::Debug for RoutesError {
    // As `Display`: it is what `unwrap` and `main` print.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for RoutesError {}

#[cfg(test)]
mod tests;
