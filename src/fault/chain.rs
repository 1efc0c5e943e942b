//! The walk down a source chain.

use std::error::Error;
use std::io;
use std::sync::Arc;

/// More links than any real chain has; an error that is its own source must end too.
const LONGEST: usize = 32;

pub(crate) type Link<'a> = &'a (dyn Error + 'static);

/// The links of a chain, from the outside in.
#[derive(Clone)]
pub(crate) struct Links<'a> {
    next: Option<Link<'a>>,
    left: usize,
}

impl<'a> Links<'a> {
    pub(crate) fn of(error: Link<'a>) -> Links<'a> {
        Links { next: Some(error), left: LONGEST }
    }
}

impl<'a> Iterator for Links<'a> {
    type Item = Link<'a>;

    fn next(&mut self) -> Option<Link<'a>> {
        self.left = self.left.checked_sub(1)?;
        let link = self.next.take()?;
        self.next = beneath(link);
        Some(link)
    }
}

/// What lies directly beneath a link, where `source()` alone would step over it.
fn beneath(link: Link<'_>) -> Option<Link<'_>> {
    // An `io::Error` answers with the source *of* what it wraps: the wrapped error itself would never be seen.
    if let Some(inner) = peek::<io::Error>(link).and_then(io::Error::get_ref) {
        return Some(inner);
    }
    // A shared erased error does the same.
    if let Some(shared) = link.downcast_ref::<Arc<dyn Error + Send + Sync>>() {
        return Some(&**shared);
    }
    link.source()
}

/// This link as a `T`, also behind the pointers that forward `Error` and so hide the type.
pub(crate) fn peek<T: Error + 'static>(link: Link<'_>) -> Option<&T> {
    link.downcast_ref::<T>()
        .or_else(|| link.downcast_ref::<Arc<T>>().map(|shared| &**shared))
        .or_else(|| link.downcast_ref::<Box<T>>().map(|boxed| &**boxed))
}
