//! What happens next.

use std::{cmp::Reverse, collections::BinaryHeap};

/// Nanoseconds since the run began.
pub(super) type Time = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A client makes its next call.
    Call { client: u32 },
    /// A call's attempt has ended.
    Ended { call: u32 },
    /// A call's wait is over.
    Resume { call: u32 },
}

/// Events in the order of time, and of those at one instant, in the order in which they were planned: nothing depends
/// on how the heap is built.
#[derive(Default)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<Planned>>,
    planned: u64,
}

impl Events {
    pub(super) fn plan(&mut self, at: Time, event: Event) {
        self.planned += 1;
        self.heap.push(Reverse(Planned { at, number: self.planned, event }));
    }

    pub(super) fn next(&mut self) -> Option<(Time, Event)> {
        self.heap.pop().map(|Reverse(planned)| (planned.at, planned.event))
    }
}

struct Planned {
    at: Time,
    number: u64,
    event: Event,
}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Planned {}
