//! The command, run; a folder; a provider that keeps every rule.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

pub const SHOP: &str = r#"format = 1

[provider.shop]
hosts     = ["api.shop.example"]
contract  = { url = "https://shop.example/docs", reviewed = 2026-11-30, owner = "platform" }
timeouts  = { attempt = "2s", total = "10s" }
attempts  = 3
backoff   = { initial = "500ms", multiplier = 2.0, max = "5s" }
transient = { status = [502, 503, 504], faults = ["connect", "reset", "timeout"] }
elsewhere = []
fallback  = "none"
"#;

pub fn with(more: &str) -> String {
    format!("{SHOP}\n{more}")
}

/// With one operation, `o`, of these lines.
pub fn operation(lines: &str) -> String {
    with(&format!("[[provider.shop.operation]]\nname = \"o\"\n{lines}\n"))
}

pub struct Ended {
    /// `None`: killed by a signal, as by `abort`.
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ended {
    pub fn all(&self) -> String {
        format!("{:?}\n{}{}", self.code, self.out, self.err)
    }
}

fn ended(mut command: Command, input: &str) -> Ended {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).env_remove("GITHUB_STEP_SUMMARY");
    command.env("RUST_BACKTRACE", "0");
    let mut child = command.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

pub const REDIAL: &str = env!("CARGO_BIN_EXE_redial");

pub fn fed(input: &str, arguments: &[&str]) -> Ended {
    let mut command = Command::new(REDIAL);
    command.args(arguments);
    ended(command, input)
}

pub fn run_in(folder: &Path, arguments: &[&str]) -> Ended {
    let mut command = Command::new(REDIAL);
    command.args(arguments).current_dir(folder);
    ended(command, "")
}

/// Through a shell, in which `$R` is the command.
pub fn shell(folder: &Path, script: &str) -> Ended {
    let mut command = Command::new("bash");
    command.args(["-c", script]).current_dir(folder).env("R", REDIAL);
    ended(command, "")
}

pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-contracts-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
