//! The most memory at once, by valgrind's DHAT: the program runs itself, as [`crate::callgrind`] has it.

use std::{env, process::Command};

use crate::callgrind;

/// Whether it can be measured here.
pub fn is_measured() -> bool {
    callgrind::is_installed()
}

/// The most bytes on the heap at once while this work is done, `size` times.
pub fn peak(work: &[&str], size: &str) -> usize {
    let output = Command::new("valgrind")
        .args(["--tool=dhat", "--dhat-out-file=/dev/null"])
        .arg(env::current_exe().expect("this program"))
        .arg("--counted")
        .args(work)
        .arg(size)
        .output()
        .expect("valgrind runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "the work failed: {text}");
    let most = text.lines().find_map(|line| line.split_once("At t-gmax:")?.1.trim().split_once(" bytes"));
    let most = most.and_then(|(bytes, _)| bytes.replace(',', "").parse().ok());
    most.unwrap_or_else(|| panic!("DHAT said: {text}"))
}
