//! The routes of one host: a tree of path segments.
//!
//! A tree of our own, because the most specific route must win also where a more specific segment leads nowhere: of
//! `/{x}:c/b` and `/{x}/{*rest}`, the path `/a:c/z` is the second's. Each node is visited once at the most, so a look-up
//! does not grow with the number of routes that do not match.

use std::{cmp::Reverse, collections::HashMap};

use http::Method;

use crate::redact::Redacted;

use super::{
    StandardPolicy,
    pattern::{Route, Segment},
};

#[derive(Default)]
pub(super) struct Table {
    literals: HashMap<String, Table>,
    /// The longest literal part first.
    partly: Vec<Partly>,
    parameter: Option<Box<Table>>,
    /// Routes that end with the rest of the path here.
    rest: Targets,
    /// Routes that end here.
    end: Targets,
}

struct Partly {
    prefix: String,
    suffix: String,
    next: Table,
}

/// Where routes of one path lead, by method.
#[derive(Default)]
struct Targets {
    named: Vec<(Method, Target)>,
    any: Option<Target>,
}

pub(super) struct Target {
    pub(super) route: String,
    pub(super) policy: StandardPolicy,
}

impl Table {
    pub(super) fn insert(&mut self, route: Route, text: &str, policy: StandardPolicy) -> Result<(), String> {
        let mut node = self;
        for segment in &route.path {
            node = match segment {
                Segment::Literal(literal) => node.literals.entry(literal.clone()).or_default(),
                Segment::Partly { prefix, suffix } => node.partly(prefix, suffix),
                Segment::Parameter => node.parameter.get_or_insert_default(),
                Segment::Rest => return node.rest.insert(route.method, text, policy),
            };
        }
        node.end.insert(route.method, text, policy)
    }

    fn partly(&mut self, prefix: &str, suffix: &str) -> &mut Table {
        let rank = |prefix: &str, suffix: &str| Reverse((prefix.len() + suffix.len(), prefix.len()));
        let same = |partly: &Partly| partly.prefix == prefix && partly.suffix == suffix;
        let at = self.partly.iter().position(same).unwrap_or_else(|| {
            let wanted = rank(prefix, suffix);
            let at = self.partly.partition_point(|partly| rank(&partly.prefix, &partly.suffix) <= wanted);
            let (prefix, suffix) = (prefix.to_owned(), suffix.to_owned());
            self.partly.insert(at, Partly { prefix, suffix, next: Table::default() });
            at
        });
        &mut self.partly[at].next
    }

    /// The most specific route for a path, which starts with its slash.
    pub(super) fn find(&self, method: &Method, path: &str) -> Option<&Target> {
        // A target without a path, as that of `CONNECT`, is matched by no route.
        self.walk(method, Some(path.strip_prefix('/')?))
    }

    /// `path`: what is left of it; `None` when all segments are used up.
    fn walk(&self, method: &Method, path: Option<&str>) -> Option<&Target> {
        let Some(path) = path else { return self.end.find(method) };
        let (segment, left) = path.split_once('/').map_or((path, None), |(segment, left)| (segment, Some(left)));
        let literal = || self.literals.get(segment)?.walk(method, left);
        let partly = || {
            let matches = self.partly.iter().filter(|partly| partly.matches(segment));
            matches.into_iter().find_map(|partly| partly.next.walk(method, left))
        };
        let parameter = || self.parameter.as_ref().filter(|_| !segment.is_empty())?.walk(method, left);
        let rest = || self.rest.find(method).filter(|_| !path.is_empty());
        literal().or_else(partly).or_else(parameter).or_else(rest)
    }
}

impl Partly {
    fn matches(&self, segment: &str) -> bool {
        // At least one character is left for the parameter.
        segment.len() > self.prefix.len() + self.suffix.len()
            && segment.starts_with(&self.prefix)
            && segment.ends_with(&self.suffix)
    }
}

impl Targets {
    fn insert(&mut self, method: Option<Method>, text: &str, policy: StandardPolicy) -> Result<(), String> {
        let taken = match &method {
            Some(method) => self.named.iter().find(|(named, _)| named == method).map(|(_, target)| target),
            None => self.any.as_ref(),
        };
        if let Some(taken) = taken {
            let other = Redacted(&taken.route);
            return Err(format!("ties with `{other}`: no request tells them apart, so leave one of them out"));
        }
        let target = Target { route: text.to_owned(), policy };
        match method {
            Some(method) => self.named.push((method, target)),
            None => self.any = Some(target),
        }
        Ok(())
    }

    fn find(&self, method: &Method) -> Option<&Target> {
        let named = self.named.iter().find(|(named, _)| named == method).map(|(_, target)| target);
        named.or(self.any.as_ref())
    }
}
