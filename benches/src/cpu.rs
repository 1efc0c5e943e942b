//! The processor's time, which does not grow while somebody else has the processor.

use std::time::Duration;

/// What this thread has taken so far, within the kernel too. `None` where the system does not say.
#[cfg(unix)]
pub fn of_this_thread() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
    Some(Duration::new(seconds, nanoseconds))
}

/// What this thread has taken so far. `None` where the system does not say.
#[cfg(not(unix))]
pub fn of_this_thread() -> Option<Duration> {
    None
}
