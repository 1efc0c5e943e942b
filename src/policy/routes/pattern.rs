//! How a route is written, and which of two is the more specific.

use std::{borrow::Cow, net::Ipv6Addr};

use http::Method;

/// Which hosts a route is for.
#[derive(Clone, Debug)]
pub(crate) enum Authority {
    HostPort(String, u16),
    Host(String),
    /// Everything that ends with this, dot included.
    Suffix(String),
    Any,
}

impl Authority {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let (host, port) = match split_port(text) {
            (host, Some(0)) if host.len() < text.len() => return Err("has the port 0"),
            split => split,
        };
        if let Some(suffix) = host.strip_prefix('*') {
            let named = suffix.strip_prefix('.').is_some_and(is_name);
            return match (named, port) {
                (true, None) => Ok(Authority::Suffix(suffix.to_ascii_lowercase())),
                (true, Some(_)) => Err("has a suffix with a port: a suffix stands for any"),
                (false, _) => Err("has a `*` in its host that is not the start of `*.suffix`"),
            };
        }
        if METHODS.iter().any(|method| method.eq_ignore_ascii_case(host)) {
            return Err("has a method that is not in capitals");
        }
        if !is_name(host.trim_end_matches('.')) && !is_ipv6(host) {
            return Err("has a host that is not `host`, `host:port`, `[address]` or `*.suffix`");
        }
        let host = normal(host).into_owned();
        Ok(match port {
            Some(port) => Authority::HostPort(host, port),
            None => Authority::Host(host),
        })
    }
}

/// What people write by mistake where a host is read.
const METHODS: [&str; 10] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"];

fn is_name(host: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    host.split('.').all(is_label)
}

fn is_ipv6(host: &str) -> bool {
    ipv6(host).is_some()
}

fn ipv6(host: &str) -> Option<Ipv6Addr> {
    host.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// One spelling for each host: in lower case, without the dot of the root, an IPv6 address in its shortest form. Hosts
/// nearly always come so: no copy then.
pub(crate) fn normal(host: &str) -> Cow<'_, str> {
    if let Some(address) = ipv6(host) {
        return Cow::Owned(format!("[{address}]"));
    }
    let host = host.strip_suffix('.').unwrap_or(host);
    match host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(host.to_ascii_lowercase()),
        false => Cow::Borrowed(host),
    }
}

/// `host:port`, or a host alone; an IPv6 address keeps its brackets.
pub(crate) fn split_port(authority: &str) -> (&str, Option<u16>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            match port.parse() {
                Ok(port) => (host, Some(port)),
                Err(_) => (authority, None),
            }
        }
        _ => (authority, None),
    }
}

/// One segment of a path pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    Literal(String),
    /// A parameter with something literal before or after it.
    Partly {
        prefix: String,
        suffix: String,
    },
    Parameter,
    /// What is left of the path; at least one character.
    Rest,
}

impl Segment {
    fn parse(text: &str) -> Result<Self, &'static str> {
        const BRACES: &str = "has a brace in its path that is not part of `{name}` or `{*name}`";
        let Some((prefix, rest)) = text.split_once('{') else {
            return if text.contains('}') { Err(BRACES) } else { Ok(Segment::Literal(text.to_owned())) };
        };
        let (name, suffix) = rest.split_once('}').ok_or(BRACES)?;
        if suffix.contains('{') {
            return Err("has two parameters in one segment of its path");
        }
        let (name, rest) = name.strip_prefix('*').map_or((name, false), |name| (name, true));
        if name.is_empty() || name.contains(['{', '*']) || prefix.contains('}') || suffix.contains('}') {
            return Err(BRACES);
        }
        match (rest, prefix, suffix) {
            (true, "", "") => Ok(Segment::Rest),
            (true, ..) => Err("has `{*name}` beside other text: it is a segment of its own"),
            (false, "", "") => Ok(Segment::Parameter),
            (false, prefix, suffix) => Ok(Segment::Partly { prefix: prefix.to_owned(), suffix: suffix.to_owned() }),
        }
    }
}

/// The tree of routes is walked by recursion, so its depth is bounded.
const SEGMENTS: usize = 64;

/// A route, read.
pub(crate) struct Route {
    pub(crate) authority: Authority,
    pub(crate) method: Option<Method>,
    pub(crate) path: Vec<Segment>,
}

impl Route {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts: Vec<&str> = text.split_whitespace().collect();
        let path = parts.pop().filter(|path| path.starts_with('/')).ok_or("does not end with a /path")?;
        if path.contains(['?', '#']) {
            return Err("has a query: routes match paths alone".to_owned());
        }
        // A method is written in capitals and has no dot; nothing else tells `localhost GET` from `GET localhost`.
        let is_method = |part: &&str| part.bytes().all(|b| b.is_ascii_uppercase() || b == b'-' || b == b'_');
        let method = match parts.last().filter(|part| is_method(part)) {
            Some(method) => Some(Method::from_bytes(method.as_bytes()).map_err(|_| "has a method that is none")?),
            None => None,
        };
        if method.is_some() {
            parts.pop();
        }
        let authority = parts.pop().map_or(Ok(Authority::Any), Authority::parse)?;
        if !parts.is_empty() {
            return Err("has more than `host METHOD /path`".to_owned());
        }
        let path = path[1..].split('/').map(Segment::parse).collect::<Result<Vec<_>, _>>()?;
        if path.len() > SEGMENTS {
            return Err(format!("has more than {SEGMENTS} segments in its path"));
        }
        if path.iter().rev().skip(1).any(|segment| *segment == Segment::Rest) {
            return Err("has `{*name}` before the end of its path".to_owned());
        }
        Ok(Route { authority, method, path })
    }
}
