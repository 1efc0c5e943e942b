//! TLS to a PostgreSQL server that asks for it: one of our own, for this test alone, with a certificate that it made itself.
//! Left out where the server's programs are not installed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use redial_jobs::{JobStore, SqlOptions, SqlStore, State};

use crate::{
    alone, err, out,
    place::{self, job, server::left_out},
};

/// Ends with the test.
struct Server {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
}

impl Server {
    fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            left_out("TLS to PostgreSQL: its program initdb is not installed");
            return None;
        };
        let folder = std::env::temp_dir().join(format!("redial-jobs-tls-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let mut server = Self { programs, folder, port: 0 };
        server.write("server", &generate_simple_self_signed(["localhost".to_owned()]).unwrap());
        server.write("other", &generate_simple_self_signed(["localhost".to_owned()]).unwrap());
        if is_root() {
            // The server refuses to run as root.
            must(Command::new("chown").args(["-R", "postgres"]).arg(&server.folder));
        }
        must(
            server
                .program("initdb")
                .args(["--username=postgres", "--auth=trust", "--no-sync", "-D"])
                .arg(server.data()),
        );
        fs::write(server.data().join("pg_hba.conf"), "hostssl all all 127.0.0.1/32 trust\n").unwrap();
        // Another may take a free port before the server does.
        let started = (0..5).any(|_| {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            server.port = free.local_addr().unwrap().port();
            drop(free);
            server.run().status.success()
        });
        assert!(started, "{}", fs::read_to_string(server.folder.join("data/log")).unwrap_or_default());
        Some(server)
    }

    fn run(&self) -> Output {
        let [folder, certificate, key] = ["", "server.pem", "server.key"].map(|name| self.folder.join(name));
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories={} -c fsync=off -c ssl=on \
             -c ssl_cert_file={} -c ssl_key_file={}",
            self.port,
            folder.display(),
            certificate.display(),
            key.display()
        );
        let (data, log) = (self.data(), self.data().join("log"));
        let mut start = self.program("pg_ctl");
        start.args(["start", "--wait", "--options", &options]).arg("-D").arg(data).arg("-l").arg(log);
        output(&mut start)
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn write(&self, name: &str, made: &CertifiedKey<rcgen::KeyPair>) {
        use std::os::unix::fs::PermissionsExt;
        let key = self.folder.join(format!("{name}.key"));
        fs::write(self.folder.join(format!("{name}.pem")), made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn program(&self, name: &str) -> Command {
        let program = self.programs.join(name);
        if !is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(program);
        command
    }

    fn url(&self, ask: &str) -> String {
        format!("postgres://postgres@localhost:{}/postgres?{ask}", self.port)
    }

    fn trusting(&self, certificate: &str) -> String {
        let file = self.folder.join(certificate);
        self.url(&format!("sslmode=verify-full&sslrootcert={}", file.display()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = output(self.program("pg_ctl").args(["stop", "-m", "immediate", "-D"]).arg(self.data()));
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The newest release that is installed.
fn programs() -> Option<PathBuf> {
    let releases = fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|release| release.path().join("bin"));
    let known = |programs: &PathBuf| programs.join("initdb").is_file() && programs.join("pg_ctl").is_file();
    releases.filter(known).max_by_key(|programs| number(programs))
}

fn number(programs: &Path) -> Option<u32> {
    programs.parent()?.file_name()?.to_str()?.parse().ok()
}

fn is_root() -> bool {
    output(Command::new("id").arg("-u")).stdout == b"0\n"
}

/// A server that is started holds what it inherits open: so its output goes nowhere.
fn output(command: &mut Command) -> Output {
    if command.get_args().any(|argument| argument == "start") {
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        return Output { status, stdout: Vec::new(), stderr: Vec::new() };
    }
    command.output().unwrap()
}

fn must(command: &mut Command) {
    let output = output(command);
    assert!(output.status.success(), "{command:?}: {}", err(&output));
}

#[tokio::test]
async fn a_server_that_asks_for_tls() {
    let Some(server) = Server::start() else { return };
    let store = SqlStore::postgres(&server.trusting("server.pem"), SqlOptions::new()).await.unwrap();
    store.migrate().await.unwrap();
    place::enqueue(&store, job("a")).await;
    assert_eq!(store.stats().await.unwrap().count(State::Pending), 1);
    let listed = alone(&["--url", &server.trusting("server.pem"), "list"]);
    assert!(listed.status.success() && out(&listed).contains("PENDING"), "{}", err(&listed));
    // Encrypted, and nobody asked with whom.
    assert!(SqlStore::postgres(&server.url("sslmode=require"), SqlOptions::new()).await.is_ok());

    let error = SqlStore::postgres(&server.url("sslmode=disable"), SqlOptions::new()).await.unwrap_err();
    assert!(error.is_store() && error.to_string().contains("no encryption"), "{error}");
    for untrusted in [server.trusting("other.pem"), server.url("sslmode=verify-full")] {
        let error = SqlStore::postgres(&untrusted, SqlOptions::new()).await.unwrap_err();
        assert!(error.is_store(), "{error}");
        let listed = alone(&["--url", &untrusted, "list"]);
        assert_eq!(listed.status.code(), Some(2), "{}", out(&listed));
        assert!(err(&listed).contains("certificate"), "{}", err(&listed));
    }
}
