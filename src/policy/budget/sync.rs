//! The atomics of this folder: loom's while its models run, the standard ones otherwise.

#[cfg(not(redial_loom))]
pub(super) use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(redial_loom)]
pub(super) use loom::sync::atomic::{AtomicU64, Ordering};

/// An atomic on a cache line of its own, so that writing it does not evict the rules that every call reads beside it.
#[repr(align(64))]
pub(super) struct Line(pub(super) AtomicU64);
