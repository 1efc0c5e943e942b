//! The examples run, as a reader would run them, and say what they are there to show.

use std::{
    env,
    process::{Command, Output},
};

fn run(name: &str) -> Output {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        // All of them, as the test command has them: nothing is built twice.
        .args(["run", "--quiet", "--all-features", "--example", name])
        .env("NO_COLOR", "1")
        .output()
        .expect("cargo")
}

/// These, in their order, each in a line of its own.
fn says(name: &str, lines: &[&str]) {
    let output = run(name);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: {}\n{out}{err}", output.status);
    let mut left = out.lines();
    for line in lines {
        assert!(left.any(|said| said.contains(line)), "{name} does not say, in order: {line}\n{out}");
    }
}

#[test]
fn two_levels_repair_a_bad_minute() {
    says(
        "two_levels",
        &[
            "worst case of a target: 3 attempts x 3 failures = 9 requests",
            "batch                 4 jobs enqueued",
            "server  bob           committed, and the answer is lost",
            "server  bob           409: the file is there already",
            "commit bob    it was done already",
            "commit bob    COMPLETED",
            "committed, the answer is lost, and DOWN",
            "commit ada    FAILED 1 (exhausted); it may have been done",
            "to be tried again",
            "UP again",
            "COMPLETED, run",
            "jobs     12 COMPLETED",
            "commits  ada 1, bob 1, cyd 1, eve 1",
        ],
    );
}
