//! How a route is written, and which of two is the more specific.

use http::Method;

/// Which hosts a route is for.
#[derive(Clone, Debug)]
pub(super) enum Authority {
    HostPort(String, u16),
    Host(String),
    /// Everything that ends with this, dot included.
    Suffix(String),
    Any,
}

impl Authority {
    fn parse(text: &str) -> Result<Self, String> {
        let (host, port) = split_port(text);
        let host = host.to_ascii_lowercase();
        if host.is_empty()
            || host.contains(['/', '@', ' '])
            || (text.contains(':') && port.is_none() && !host.starts_with('['))
        {
            return Err(format!("has the host `{text}`, which is not `host`, `host:port` or `*.suffix`"));
        }
        match (host.strip_prefix('*'), port) {
            (Some(suffix), None) if suffix.starts_with('.') && suffix.len() > 1 && !suffix.contains('*') => {
                Ok(Authority::Suffix(suffix.to_owned()))
            }
            (None, _) if host.contains('*') => {
                Err(format!("has the host `{text}`: a `*` stands only at its start, as `*.example.com`"))
            }
            (None, Some(port)) => Ok(Authority::HostPort(host, port)),
            (None, None) => Ok(Authority::Host(host)),
            (Some(_), Some(_)) => Err(format!("has the host `{text}`: a suffix has no port")),
            (Some(_), None) => Err(format!("has the host `{text}`: a suffix is written as `*.example.com`")),
        }
    }
}

/// `host:port`, or a host alone; an IPv6 address keeps its brackets.
pub(super) fn split_port(authority: &str) -> (&str, Option<u16>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (authority, None),
        },
        _ => (authority, None),
    }
}

/// One segment of a path pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
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
pub(super) struct Route {
    pub(super) authority: Authority,
    pub(super) method: Option<Method>,
    pub(super) path: Vec<Segment>,
}

impl Route {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
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
