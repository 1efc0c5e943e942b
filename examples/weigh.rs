//! What each feature weighs: crates, the compiler they ask for, and what a cold build costs, as `docs/weight.md` says it.
//!
//! `cargo run --example weigh -- --check` compares the page with the tree and fails where they differ; `--write` mends the
//! page; `--write --time` also builds each whose time is a `?` from nothing, in a folder of its own, and notes the CPU time that
//! this took.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::Path,
    process::Command,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/weight.md");
const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
/// The table ends the page.
const HEAD: &str = "| features | crates | Rust | cold build, CPU |\n| --- | ---: | ---: | ---: |\n";
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A row: what it is called, and what is switched on besides nothing.
const ROWS: &[(&str, &str)] = &[
    ("none: the core", ""),
    ("`hyper`, `tower`: the default", "default"),
    ("`rustls`", "rustls"),
    ("`tower-retry`", "tower-retry"),
    ("`axum`", "axum"),
    ("`idempotency-key`", "idempotency-key"),
    ("`metrics`", "metrics"),
    ("`reqwest`", "reqwest"),
    ("`reqwest-middleware`", "reqwest-middleware"),
    ("`hyper-rustls`", "hyper-rustls"),
    ("`grpc`", "grpc"),
    ("`contract`", "contract"),
    ("`simulate`", "simulate"),
    ("`cli`", "cli"),
    ("`testing`", "testing"),
];

struct Weight {
    crates: usize,
    /// The newest compiler that a crate of the tree asks for, this one included.
    rust: Version,
    build: Option<f64>,
}

type Version = (u32, u32);

fn main() -> Outcome<()> {
    let asked: BTreeSet<String> = env::args().skip(1).collect();
    let known = ["--check", "--write", "--time"];
    let (check, write, time) = (asked.contains(known[0]), asked.contains(known[1]), asked.contains(known[2]));
    if asked.iter().any(|asked| !known.contains(&asked.as_str())) || check == write || (check && time) {
        return Err("weigh --check | --write [--time]".into());
    }

    let page = fs::read_to_string(PAGE)?;
    let (text, table) = page.split_once(HEAD).ok_or("docs/weight.md has lost the head of its table")?;
    let noted = times(table);
    let versions = rust_versions()?;

    let mut mended = String::new();
    for (name, features) in ROWS {
        let mut weight = weigh(features, &versions)?;
        weight.build = match noted.get(*name).copied() {
            None if time => Some(build(features)?),
            noted => noted,
        };
        let row = row(name, &weight);
        print!("{row}");
        mended += &row;
    }
    let core = weigh("", &versions)?.rust;
    let own = own_rust_version()?;
    if core > own {
        return Err(format!(
            "the core asks for Rust {}.{}, and Cargo.toml promises {}.{}",
            core.0, core.1, own.0, own.1
        )
        .into());
    }

    if write {
        fs::write(PAGE, format!("{text}{HEAD}{mended}"))?;
    } else if mended.contains("| ? |") {
        return Err("docs/weight.md says nothing of some builds: `weigh -- --write --time` measures them".into());
    } else if table != mended {
        return Err(
            format!("docs/weight.md is stale, mend it with `weigh -- --write`; the table is now\n{mended}").into()
        );
    }
    Ok(())
}

fn row(name: &str, weight: &Weight) -> String {
    let build = weight.build.map_or_else(|| "?".to_owned(), |seconds| format!("{seconds:.0} s"));
    format!("| {name} | {} | {}.{} | {build} |\n", weight.crates, weight.rust.0, weight.rust.1)
}

/// The times that the page already has: nothing but a build can measure them anew.
fn times(table: &str) -> BTreeMap<String, f64> {
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let name = cells.next()?.to_owned();
        Some((name, cells.nth(2)?.strip_suffix(" s")?.parse().ok()?))
    };
    table.lines().filter_map(row).collect()
}

/// What a user of these features compiles: neither tests nor examples.
fn weigh(features: &str, versions: &BTreeMap<String, Version>) -> Outcome<Weight> {
    let tree = cargo(&[
        "tree",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
        "--target",
        TARGET,
        "--no-default-features",
        "--features",
        features,
        "--package",
        "redial",
    ])?;
    let package = |line: &str| {
        let mut words = line.split(' ');
        Some(format!("{} {}", words.next()?, words.next()?.trim_start_matches('v')))
    };
    let packages: BTreeSet<String> = tree.lines().filter_map(package).collect();
    let rust = packages.iter().filter_map(|package| versions.get(package)).max().copied().unwrap_or_default();
    Ok(Weight { crates: packages.len() - 1, rust, build: None })
}

/// `name version` of every crate in the lock file, to the compiler that it asks for.
fn rust_versions() -> Outcome<BTreeMap<String, Version>> {
    let metadata = cargo(&["metadata", "--format-version", "1", "--all-features"])?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().ok_or("no packages")?;
    let version = |package: &serde_json::Value| {
        let [name, version, rust] = ["name", "version", "rust_version"].map(|key| package[key].as_str());
        Some((format!("{} {}", name?, version?), parsed(rust?)?))
    };
    Ok(packages.iter().filter_map(version).collect())
}

fn own_rust_version() -> Outcome<Version> {
    let manifest = fs::read_to_string(MANIFEST)?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    line.and_then(|line| parsed(line.trim_matches('"'))).ok_or_else(|| "Cargo.toml has no rust-version".into())
}

fn parsed(version: &str) -> Option<Version> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// The CPU time of a build from nothing, as the kernel counts it for children that have ended: it hardly depends on
/// what else the machine does.
fn build(features: &str) -> Outcome<f64> {
    let folder = env::temp_dir().join(format!("redial-weigh-{}", std::process::id()));
    let before = spent()?;
    let target = folder.to_str().ok_or("a folder that is no text")?;
    let package = ["build", "--quiet", "--package", "redial", "--lib", "--no-default-features", "--features", features];
    cargo(&[&package[..], &["--target-dir", target]].concat())?;
    fs::remove_dir_all(&folder)?;
    Ok(spent()? - before)
}

/// Seconds of ended children, user and system: fields 16 and 17 of proc_pid_stat(5), in ticks of 10 ms.
fn spent() -> Outcome<f64> {
    let stat = fs::read_to_string(Path::new("/proc/self/stat"))?;
    let after_name = stat.rsplit_once(')').ok_or("no name in /proc/self/stat")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3).and_then(|field| field.parse::<f64>().ok());
    let (user, system) = ticks(16).zip(ticks(17)).ok_or("/proc/self/stat is too short")?;
    Ok((user + system) / 100.0)
}

fn cargo(arguments: &[&str]) -> Outcome<String> {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output()?;
    if !output.status.success() {
        let mut text = format!("cargo {} failed\n", arguments.join(" "));
        write!(text, "{}", String::from_utf8_lossy(&output.stderr))?;
        return Err(text.into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
