//! What redial costs on the wire: `cargo bench --bench wire`.
//!
//! The same request (POST, 8 headers, 256 bytes) and the same rule through `RetryLayer`, through its peers and through a
//! loop written by hand, each over the same client and over real sockets of loopback, beside that client alone.
//!
//! - **instructions**: those of the client, by callgrind where valgrind is installed. The server is a process of its own,
//!   and takes a moment for its answers, so that each call goes the same way.
//! - **CPU**: the time of the client's thread, within the kernel too; the median of rounds that take turns.

mod failures;
mod loopback;
mod over_reqwest;
mod overhead;
mod peers;
mod server;
mod upload;

use redial_benches::{callgrind, options, report::Report};

use peers::Version;
use server::Server;

fn main() {
    if server::is_asked_for() {
        return server::serve();
    }
    if let Some((work, times)) = callgrind::asked() {
        return match work.split_first() {
            Some((what, work)) if what == "loopback" => loopback::counted(work, times),
            Some((what, work)) if what == "reqwest" => over_reqwest::counted(work, times),
            Some((what, work)) if what == "upload" => upload::measured(work, times),
            _ => panic!("nobody can do {work:?}"),
        };
    }
    let server = Server::start();
    let mut report = Report::new("wire", "On the wire");
    if !callgrind::is_installed() {
        report.without_valgrind();
    }
    report.say(
        "A call is the making of its request (8 headers, 256 bytes), its sending, and the reading of an answer of the same \
         size: without the first, and with an answer of two headers, the client alone takes three fifths of the \
         instructions, and every share is larger.\n",
    );
    report.say("A call over HTTP/1.1 that succeeds at once, over hyper-util's client alone:\n");
    loopback::report(&mut report, &server, Version::Http1);
    report.say("The same over HTTP/2:\n");
    loopback::report(&mut report, &server, Version::Http2);
    report.say("The same over reqwest alone, and HTTP/1.1:\n");
    over_reqwest::report(&mut report, &server);
    report.say(
        "What the wire adds to a call's instructions in memory: an attempt's body is 40 bytes larger than the caller's, \
         its request is thereby above 256 bytes, and hyper moves it about twenty times (1200); the timer and its clock \
         (1200). Over reqwest, its request becomes one of `http` and back: the URL is read a second time (900) and \
         kept, and request and answer are moved. A body of one word, shared with the call, would save the first, and \
         take a lock for each look at it.\n",
    );
    report.say(
        "1000 calls, each answered 503 twice and then 200. New connections: 3 callers at once over HTTP/1.1, 64 KiB with \
         each 503, all on one thread; on several, the pool may open one or two more before a connection is back. Success: 16 \
         at once over one connection of HTTP/2, 1 MiB with each 503:\n",
    );
    failures::report(&mut report);
    report.say(
        "1 GiB in chunks of 16 KiB, streamed over HTTP/1.1 through the replay tee, which keeps 64 KiB at most. \
         The time is the shortest of the rounds:\n",
    );
    upload::report(&mut report, &server);
    report.write();
}

/// This much of it, or a tenth with `--quick`.
fn few_or(many: usize) -> usize {
    if options::quick() { many.div_ceil(10) } else { many }
}
