//! Where the figures were taken.

use std::{fs, process::Command};

/// One line: the day, the machine's class, and the compiler.
pub fn line() -> String {
    let day = printed("date", &["-u", "+%Y-%m-%d"]);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "a processor that has no name".into());
    let memory = field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok())
        .map_or(String::new(), |kib| format!(", {:.0} GiB", kib / 1024.0 / 1024.0));
    let rustc = printed("rustc", &["--version"]);
    format!("{day}; {cores} cores of {cpu}{memory}, {}; {rustc}", std::env::consts::OS)
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

fn printed(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(|_| format!("{program} unknown"), |output| String::from_utf8_lossy(&output.stdout).trim().into())
}
