//! Instructions, counted by callgrind where valgrind is installed. The program runs itself, with arguments that say what to
//! do and how often: of two runs that differ in nothing but that number, the difference is what is counted.

use std::{env, process::Command, thread};

/// Whether instructions can be counted here.
pub fn is_installed() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// What callgrind looks at: found by its name, and so not inlined.
#[inline(never)]
pub fn collected<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// The words after `--counted`, where this run is one that is counted: the work's own, then how often to do it.
pub fn asked() -> Option<(Vec<String>, usize)> {
    let mut words: Vec<String> = env::args().skip_while(|word| word != "--counted").skip(1).collect();
    let times = words.pop()?.parse().expect("a number of times");
    Some((words, times))
}

/// Instructions of doing this work once: what is within [`collected`], in this thread and in others.
///
/// The same work is done `few` and `many` times, so that what only the first costs is left out.
pub fn instructions(work: &[&str], few: usize, many: usize) -> f64 {
    let run = |times: usize| -> i64 {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*callgrind*collected*"])
            .arg(env::current_exe().expect("this program"))
            .arg("--counted")
            .args(work)
            .arg(times.to_string())
            .output()
            .expect("valgrind runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "the work failed: {text}");
        let collected = text.lines().find_map(|line| line.split_once("Collected :"));
        collected.and_then(|(_, count)| count.trim().parse().ok()).unwrap_or_else(|| panic!("callgrind said: {text}"))
    };
    // At once: neither can disturb what the other counts.
    let (few_count, many_count) = thread::scope(|scope| {
        let other = scope.spawn(|| run(few));
        let many = run(many);
        (other.join().expect("the other run"), many)
    });
    (many_count - few_count) as f64 / (many - few) as f64
}
