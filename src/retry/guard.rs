//! One retry per path (S13): by types where they reach, by a marker where they do not.

use std::sync::LazyLock;

use http::Extensions;
use tokio::time::Instant;

use super::{AttemptBody, Replay};
use crate::RequestOptions;

/// Never implemented: the bound under which an [`AttemptBody`] could enter a second retry layer.
///
/// A request leaves a [`RetryLayer`](crate::RetryLayer) as `Request<AttemptBody<B>>`. A second `RetryLayer` below
/// would need `AttemptBody<B>: Replay`, which exists only under this bound. The impl exists at all so that the
/// compiler prints this reason, and not a bare "trait bounds were not satisfied", wherever people meet it.
#[diagnostic::on_unimplemented(
    message = "two `RetryLayer`s on one path: requests would multiply",
    label = "this stack holds a second `RetryLayer`",
    note = "stacked retries multiply (3 x 3 = 9 requests): keep one `RetryLayer` per path and remove the other",
    note = "a handler that forwards requests of its own starts a new path: build a new request, or call `redial::detach`"
)]
pub trait OneRetryPerPath: sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
}

impl<B> Replay for AttemptBody<B> where B: Replay + OneRetryPerPath {}

/// In the extensions of every attempt: the request has passed a retry layer. Zero-sized, so that it costs no
/// allocation of its own.
#[derive(Clone, Copy)]
struct Attempted;

/// Beside [`Attempted`] from the second attempt on: which one. Zero-sized too, and so a type for each number.
#[derive(Clone, Copy)]
struct Number<const NUMBER: u32>;

macro_rules! numbers {
    ($($number:literal)*) => {
        fn number(extensions: &mut Extensions, attempt: u32) {
            match attempt {
                $($number => drop(extensions.insert(Number::<$number>)),)*
                _ => {}
            }
        }

        fn numbered(extensions: &Extensions) -> u32 {
            $(if extensions.get::<Number<$number>>().is_some() {
                return $number;
            })*
            1
        }

        fn unnumber(extensions: &mut Extensions) {
            $(extensions.remove::<Number<$number>>();)*
        }
    };
}

// No policy has more attempts (S12).
numbers!(2 3 4 5 6 7 8 9);
const MOST: usize = 9;

/// Beside them where the attempt tells its server: when it ends.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "grpc"), allow(dead_code))] // read by gRPC's client alone
pub(crate) struct AttemptEnds(pub(crate) Instant);

/// Those of each attempt, cloned where a request has no extensions: cheaper than to make the same map anew.
static MARKS: LazyLock<[Extensions; MOST]> = LazyLock::new(|| {
    std::array::from_fn(|place| {
        let mut marks = Extensions::new();
        marks.insert(Attempted);
        number(&mut marks, place as u32 + 1);
        marks
    })
});

pub(crate) fn mark(extensions: &mut Extensions, attempt: u32) {
    let made = if extensions.is_empty() { MARKS.get(attempt.wrapping_sub(1) as usize) } else { None };
    match made {
        Some(marks) => extensions.clone_from(marks),
        None => {
            extensions.insert(Attempted);
            if attempt > 1 {
                // There may be one where a middleware keeps its extensions from attempt to attempt.
                unnumber(extensions);
                number(extensions, attempt);
            }
        }
    }
}

pub(super) fn is_marked(extensions: &Extensions) -> bool {
    extensions.get::<Attempted>().is_some()
}

/// Hands the marks on to where a middleware keeps its extensions.
#[cfg(feature = "reqwest-middleware")]
pub(crate) fn hand_on(from: &Extensions, to: &mut Extensions) {
    if let Some(attempt) = attempt_number(from) {
        mark(to, attempt);
    }
}

/// Takes the marks out, and leaves all else.
pub(crate) fn unmark(extensions: &mut Extensions) {
    extensions.remove::<Attempted>();
    unnumber(extensions);
    extensions.remove::<AttemptEnds>();
}

/// Which attempt a request below a [`RetryLayer`](crate::RetryLayer) is: 1 for the first try. `None`: it passed no
/// retry layer.
pub fn attempt_number(extensions: &Extensions) -> Option<u32> {
    is_marked(extensions).then(|| numbered(extensions))
}

/// Starts a new path: removes what a retry layer left in a request's extensions, and the [`RequestOptions`] that the
/// caller gave for the path before: that a repeat of one operation is safe says nothing about another.
///
/// For a handler that is called in process and forwards the very request it was given to another service, whose
/// retries it wants to be independent. Without it, that service's retry layer sends once, since the outer one
/// already repeats the handler. No socket carries the marker, and a newly built request does not have it.
pub fn detach(extensions: &mut Extensions) {
    unmark(extensions);
    extensions.remove::<RequestOptions>();
}
