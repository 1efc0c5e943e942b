//! Which reply a request gets.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Method;

use super::{
    answer::Part,
    reply::{Reply, What},
};
use crate::policy::routes::pattern::{Authority, Route, Segment};

/// What to answer: a list of replies, one a request, for all requests or by route.
///
/// The first request gets the first reply, and so on, counted over all connections; the last reply repeats, unless the
/// script is [`exact`](Self::exact). A list of replies is a script as it stands:
/// `Server::http1([Reply::status(503), Reply::ok("done")])`.
///
/// ```
/// use redial::testing::{Reply, Script};
///
/// let script = Script::new([Reply::status(404)])
///     .route("POST /orders", [Reply::status(503), Reply::status(201)])
///     .route("/orders/{id}", [Reply::ok("an order")]);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a script does nothing until a server or a service plays it"]
pub struct Script {
    routes: Vec<Listed>,
    otherwise: Vec<Reply>,
    exact: bool,
    pub(super) readiness: Vec<Readiness>,
    pub(super) max_streams: Option<u32>,
}

#[derive(Clone, Debug)]
struct Listed {
    pattern: Pattern,
    replies: Vec<Reply>,
}

/// How a [`service`](super::service) becomes ready. A server knows nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Readiness {
    /// At once.
    Now,
    /// This long after it was first asked.
    After(Duration),
    /// Never.
    Never,
    /// Not at all: it fails with [`NotReady`](super::NotReady).
    Fails,
}

impl Script {
    /// These replies, in order, for every request that no [`route`](Self::route) takes.
    ///
    /// # Panics
    ///
    /// Without a reply.
    #[track_caller]
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let otherwise = some(replies);
        Script { routes: Vec::new(), otherwise, exact: false, readiness: Vec::new(), max_streams: None }
    }

    /// These replies, in order, for the requests of this route: `METHOD /path`, or `/path` for every method, with
    /// `{name}` for a segment and `{*name}` for the rest, as [`Routes`](crate::Routes) writes them, but without a host.
    /// The first route that matches takes the request.
    ///
    /// # Panics
    ///
    /// Without a reply, and on a route that cannot be read.
    #[track_caller]
    pub fn route(mut self, route: &str, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.routes.push(Listed { pattern: Pattern::new(route), replies: some(replies) });
        self
    }

    /// A request beyond the last reply of its list is a failure of the test: a service panics, and a server closes the
    /// connection and panics when it is dropped.
    pub fn exact(mut self) -> Self {
        self.exact = true;
        self
    }

    /// For a [`service`](super::service): how it becomes ready for the first call, the second, and so on; after these,
    /// at once.
    pub fn readiness(mut self, readiness: impl IntoIterator<Item = Readiness>) -> Self {
        self.readiness = readiness.into_iter().collect();
        self
    }

    /// HTTP/2: how many streams a connection may have open, `SETTINGS_MAX_CONCURRENT_STREAMS`. Default: not limited.
    ///
    /// With 0 no request reaches the script, and the client sees its own timeout, or none. One that is sent before the
    /// server's `SETTINGS` have arrived is refused: `refused-stream`, unsent. A service with 0 never answers, and
    /// ignores any other number; so does HTTP/1.1.
    pub fn max_concurrent_streams(mut self, streams: u32) -> Self {
        self.max_streams = Some(streams);
        self
    }

    pub(super) fn replies(&self) -> impl Iterator<Item = &Reply> {
        self.routes.iter().flat_map(|listed| &listed.replies).chain(&self.otherwise)
    }

    /// Says of what a wire cannot carry, before anything is sent.
    #[track_caller]
    pub(super) fn check(&self, wire: &str, carries: impl Fn(&Reply) -> bool) {
        if let Some(reply) = self.replies().find(|reply| !carries(reply)) {
            panic!("{wire} cannot play {reply:?}");
        }
    }
}

impl Reply {
    pub(super) fn is_of_sockets(&self) -> bool {
        !matches!(self.what, What::NotConnected | What::Error(_))
    }

    pub(super) fn is_of_http1(&self) -> bool {
        let resets_stream = match &self.what {
            What::ResetStream(_) => true,
            What::Answer(answer) => answer.parts.iter().any(|part| matches!(part, Part::ResetStream(_))),
            _ => false,
        };
        self.is_of_sockets() && self.goaway.is_none() && !resets_stream
    }
}

impl From<Reply> for Script {
    fn from(reply: Reply) -> Self {
        Script::new([reply])
    }
}

impl<const N: usize> From<[Reply; N]> for Script {
    #[track_caller]
    fn from(replies: [Reply; N]) -> Self {
        Script::new(replies)
    }
}

impl From<Vec<Reply>> for Script {
    #[track_caller]
    fn from(replies: Vec<Reply>) -> Self {
        Script::new(replies)
    }
}

#[track_caller]
fn some(replies: impl IntoIterator<Item = Reply>) -> Vec<Reply> {
    let replies: Vec<_> = replies.into_iter().collect();
    assert!(!replies.is_empty(), "a script needs a reply");
    replies
}

/// A method and a path, with parameters.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    method: Option<Method>,
    path: Vec<Segment>,
}

impl Pattern {
    #[track_caller]
    pub(super) fn new(text: &str) -> Self {
        match Route::parse(text) {
            Ok(Route { authority: Authority::Any, method, path }) => Pattern { method, path },
            Ok(_) => panic!("the route `{text}` has a host: a script is that of one server"),
            Err(problem) => panic!("the route `{text}` {problem}"),
        }
    }

    /// `path`: with or without its query.
    pub(super) fn matches(&self, method: &Method, path: &str) -> bool {
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        let mut left = Some(path.strip_prefix('/').unwrap_or(path));
        for segment in &self.path {
            let Some(path) = left else { return false };
            let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
            left = rest;
            let matches = match segment {
                Segment::Literal(literal) => first == literal,
                Segment::Partly { prefix, suffix } => {
                    let parameter = first.strip_prefix(&**prefix).and_then(|rest| rest.strip_suffix(&**suffix));
                    parameter.is_some_and(|parameter| !parameter.is_empty())
                }
                Segment::Parameter => !first.is_empty(),
                Segment::Rest => {
                    left = None;
                    !path.is_empty()
                }
            };
            if !matches {
                return false;
            }
        }
        left.is_none() && self.method.as_ref().is_none_or(|own| own == method)
    }
}

/// A script that is being played, by clones that share its place.
#[derive(Clone, Debug)]
pub(super) struct Player(Arc<Playing>);

#[derive(Debug)]
struct Playing {
    script: Script,
    taken: Vec<AtomicUsize>,
}

impl Player {
    pub(super) fn new(script: Script) -> Self {
        let taken = (0..=script.routes.len()).map(|_| AtomicUsize::new(0)).collect();
        Player(Arc::new(Playing { script, taken }))
    }

    pub(super) fn script(&self) -> &Script {
        &self.0.script
    }

    /// The next reply for such a request; `None`: one too many.
    pub(super) fn next(&self, method: &Method, path: &str) -> Option<&Reply> {
        let Script { routes, otherwise, exact, .. } = &self.0.script;
        let at = routes.iter().position(|listed| listed.pattern.matches(method, path)).unwrap_or(routes.len());
        let replies = routes.get(at).map_or(otherwise, |listed| &listed.replies);
        let number = self.0.taken[at].fetch_add(1, Ordering::Relaxed);
        replies.get(number).or_else(|| replies.last().filter(|_| !exact))
    }
}
