//! The command, run in a folder of a test's own.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// A folder of a test's own, gone with it.
pub struct Folder(PathBuf);

impl Folder {
    /// With these files.
    pub fn with(files: &[(&str, &str)]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tools-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let folder = Folder(path);
        files.iter().for_each(|(name, text)| folder.write(name, text));
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.fed("", arguments)
    }

    /// With this for its standard input.
    pub fn fed(&self, input: &str, arguments: &[&str]) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redial"));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Help is wrapped to a terminal's width; examples are read whole here.
        command.env("COLUMNS", "400");
        let mut child = command.current_dir(&self.0).spawn().unwrap();
        // It may end before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ended { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A provider that keeps every rule, to be changed.
pub const SHOP: &str = r#"format = 1

[provider.shop]
hosts     = ["api.shop.example"]
contract  = { url = "https://shop.example/docs", reviewed = 2026-11-30, owner = "platform" }
timeouts  = { attempt = "2s", total = "10s" }
attempts  = 3
backoff   = { initial = "500ms", multiplier = 2.0, max = "5s" }
transient = { status = [502, 503, 504], faults = ["connect", "reset", "timeout"] }
business  = { status = [404] }
elsewhere = []
fallback  = "none"

[[provider.shop.operation]]
name  = "orders.create"
match = "POST /orders"

[[provider.shop.operation]]
name  = "orders.cancel"
match = "POST /orders/{id}/cancel"
never = "a second cancellation is an error there"
"#;
