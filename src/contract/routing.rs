//! Which requests an operation is for: its routes, and what ties with them.

use std::{collections::HashMap, time::Duration};

use http::Method;

use super::{
    place::{At, Place},
    problem::Problem,
    resolve::{Operation, Provider, Resolved},
};
use crate::{
    Routes, StandardPolicy,
    policy::routes::pattern::{Authority, Route, Segment},
    redact::Redacted,
};

/// How long a request to a host that no provider has may take, where the file does not say.
const UNKNOWN_HOSTS: Duration = Duration::from_secs(60);

/// The patterns of what no operation of a provider matches.
pub(crate) const REST: [&str; 2] = ["/", "/{*rest}"];

/// The routes of a contract, while they are gathered.
#[derive(Default)]
pub(super) struct Routing {
    routes: Vec<(String, StandardPolicy)>,
    hosts: HashMap<String, (Place, String)>,
    /// What each route stands for, parameters' names aside, and where it is written.
    taken: HashMap<String, (Place, String)>,
}

/// One `METHOD /path`, read.
pub(crate) struct Matcher {
    pub(crate) method: Option<Method>,
    pub(crate) path: Vec<Segment>,
}

impl Matcher {
    /// Reads `METHOD /path`; the method may be left out.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.split_whitespace().count() > 2 {
            return Err("has more than `METHOD /path`: hosts are the provider's".to_owned());
        }
        let Route { authority, method, path } = Route::parse(text)?;
        match authority {
            Authority::Any => Ok(Matcher { method, path }),
            _ => Err("begins with what is no method: methods are written in capitals".to_owned()),
        }
    }
}

/// The methods that an operation names.
pub(crate) fn methods(operation: &Operation) -> Vec<Method> {
    let named = operation.matches.iter().filter_map(|text| Matcher::parse(text).ok()?.method);
    let named: Vec<_> = named.collect();
    if named.is_empty() {
        // For any method: none of them is idempotent then.
        return vec![Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::PUT, Method::DELETE];
    }
    named
}

impl Routing {
    /// The hosts of a provider, which no other may have.
    pub(super) fn hosts_of(&mut self, provider: &Provider, problems: &mut Vec<Problem>) {
        let about = |problem: Problem| problem.about(&provider.name, "");
        if provider.hosts.is_empty() {
            let problem = Problem::broken(
                "S18",
                provider.name.place,
                format!("the provider `{}` has no hosts", Redacted(&provider.name)),
            );
            problems.push(about(
                problem.label("`hosts` is missing").missing(["hosts"]).help("write `hosts = [\"api.example.com\"]`"),
            ));
        }
        for host in &provider.hosts {
            let authority = match Route::parse(&format!("{} /", host.value)) {
                Ok(Route { authority, method: None, .. }) if !matches!(authority, Authority::Any) => authority,
                _ => {
                    let problem = Problem::unreadable(host.place, format!("`{}` is not a host", Redacted(host)));
                    problems.push(about(
                        problem
                            .label("not a host")
                            .help("write `host`, `host:port` or `*.suffix`, without scheme and path"),
                    ));
                    continue;
                }
            };
            let key = format!("{authority:?}");
            if let Some((first, other)) = self.hosts.get(&key) {
                let whose = if *other == provider.name.value {
                    "this provider".to_owned()
                } else {
                    format!("the provider `{other}`")
                };
                let problem =
                    Problem::broken("S18", host.place, format!("{whose} has the host `{}` already", Redacted(host)));
                let help = "one host is one provider's: put the operations of both into one, or leave one out";
                problems.push(about(problem.label("once more").other(*first, "first here").help(help)));
                continue;
            }
            self.hosts.insert(key, (host.place, provider.name.value.clone()));
        }
    }

    /// The routes of an operation on each host of its provider.
    pub(super) fn add(
        &mut self,
        provider: &Provider,
        operation: &Operation,
        policy: Option<StandardPolicy>,
        problems: &mut Vec<Problem>,
    ) {
        let rest = REST.map(|path| At { value: path.to_owned(), place: operation.name.place });
        let matches = if operation.is_rest { &rest[..] } else { &operation.matches };
        for text in matches {
            let matcher = match Matcher::parse(text) {
                Ok(matcher) => matcher,
                Err(problem) => {
                    let what = problem.split_once(": ").map_or(problem.as_str(), |(what, _)| what);
                    let problem = Problem::unreadable(text.place, format!("`{}` {what}", Redacted(text)));
                    let help = "write `METHOD /path/{parameter}`, and `{*rest}` at its end for whatever follows";
                    problems
                        .push(problem.label("not a request line").help(help).about(&provider.name, &operation.name));
                    continue;
                }
            };
            let key = format!("{} {:?} {:?}", provider.name.value, matcher.method, matcher.path);
            if let Some((first, other)) = self.taken.get(&key) {
                // An operation that says what the rest would, comes first.
                if operation.is_rest {
                    continue;
                }
                let message = format!("`{}` matches the same requests as `{}`", operation.name.value, other);
                let problem = Problem::broken("S18", text.place, message).label("and here");
                let help = "no request tells them apart: leave one of them out, or make one more specific";
                problems.push(problem.other(*first, "here").help(help).about(&provider.name, &operation.name));
                continue;
            }
            self.taken.insert(key, (text.place, operation.name.value.clone()));
            if let Some(policy) = &policy {
                let routes =
                    provider.hosts.iter().map(|host| (format!("{} {}", host.value, text.value), policy.clone()));
                self.routes.extend(routes);
            }
        }
    }

    /// The routes; `None` where anything stands in their way.
    pub(super) fn build(self, resolved: &Resolved, problems: &mut Vec<Problem>) -> Option<Routes> {
        let timeout = resolved.unknown_hosts.as_ref().map_or(UNKNOWN_HOSTS, |written| written.value.0);
        let default = match StandardPolicy::unretried("unknown", timeout) {
            Ok(default) => default,
            Err(_) => {
                if let Some(written) = &resolved.unknown_hosts {
                    let problem =
                        Problem::broken("S8", written.place, "the time for unknown hosts is zero or above a day");
                    problems.push(problem.label("not so").help("give the time that a request may take"));
                }
                return None;
            }
        };
        if problems.iter().any(|problem| problem.kind != super::problem::Kind::Owed) {
            return None;
        }
        let routes =
            self.routes.into_iter().fold(Routes::builder(default), |routes, (text, policy)| routes.route(text, policy));
        match routes.build() {
            Ok(routes) => Some(routes),
            Err(refused) => {
                // Everything that routes refuse was looked for above; what was missed is said all the same.
                let place = resolved.providers.first()?.name.place;
                problems.extend(refused.problems().map(|text| Problem::unreadable(place, text)));
                None
            }
        }
    }
}
