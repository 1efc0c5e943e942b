//! What a small file may cost: a file of half a megabyte, a gigabyte and a half of address space.

use crate::support::*;

fn checked(name: &str, text: &str) {
    assert!(text.len() < 1_000_000, "{name}: {} bytes", text.len());
    let folder = Folder::new();
    folder.write("big.toml", text);
    let ended =
        shell(folder.path(), "ulimit -v 1500000; exec timeout 60 $R check --quiet big.toml > out.txt 2> err.txt");
    assert!(
        matches!(ended.code, Some(0..=2)),
        "{name}: a file of {} kB ends it with {:?} (a signal is out of memory, 124 a minute)",
        text.len() / 1000,
        ended.code
    );
}

fn operations(count: usize) -> String {
    (0..count).map(|at| format!("[[provider.shop.operation]]\nname=\"o{at}\"\nmatch=\"GET /o{at}\"\n")).collect()
}

/// Each operation has a copy of its provider's rules.
#[test]
fn rules_times_operations() {
    let rules: String = (0..3000)
        .map(|at| format!("[[provider.shop.answer]]\nwhen={{status=503,header={{x=\"{at}\"}}}}\nmeans=\"business\"\nbasis=\"project\"\n"))
        .collect();
    checked("3000 rules and 3000 operations", &with(&(rules + &operations(3000))));
}

/// Each operation has a copy of its provider's lists.
#[test]
fn lists_times_operations() {
    let statuses = SHOP.replace("[502, 503, 504]", &format!("[{}]", vec!["503"; 20_000].join(",")));
    checked("20000 statuses and 10000 operations", &format!("{statuses}\n{}", operations(10_000)));
}

/// Each host has a route for each operation.
#[test]
fn hosts_times_operations() {
    let hosts: Vec<String> = (0..20_000).map(|at| format!("\"h{at}.example\"")).collect();
    let hosts = SHOP.replace("[\"api.shop.example\"]", &format!("[{}]", hosts.join(",")));
    checked("20000 hosts and 3000 operations", &format!("{hosts}\n{}", operations(3000)));
}

/// Each waiver is held against each problem.
#[test]
fn waivers_times_problems() {
    let operations: String = (0..5000)
        .map(|at| {
            format!("[[provider.shop.operation]]\nname=\"o{at}\"\nmatch=\"GET /o{at}\"\nelsewhere=[{{by=\"x\"}}]\n")
        })
        .collect();
    let waivers: String = (0..5000)
        .map(|at| {
            format!(
                "[[waiver]]\nrule=\"S13\"\nprovider=\"shop\"\noperation=\"zz{at}\"\nreason=\"x\"\nuntil=2027-01-01\n"
            )
        })
        .collect();
    checked("5000 waivers and 5000 problems", &with(&(operations + &waivers)));
}

/// Each finding that is printed reads the file from its beginning.
#[test]
fn many_findings_are_printed_in_a_while() {
    use std::time::Instant;
    let text = with(
        &(0..1500)
            .map(|at| {
                format!("[[provider.shop.operation]]\nname=\"o{at}\"\nmatch=\"GET /o{at}\"\nelsewhere=[{{by=\"x\"}}]\n")
            })
            .collect::<String>(),
    );
    let timed = |format: &str| {
        let start = Instant::now();
        assert_eq!(fed(&text, &["check", "-", "--quiet", "--format", format]).code, Some(1));
        start.elapsed()
    };
    let (json, human) = (timed("json"), timed("human"));
    assert!(human < json * 4, "1500 findings of {} kB: {json:?} as JSON, {human:?} for people", text.len() / 1000);
}

/// A scenario within every bound that is stated.
#[test]
fn a_silent_server() {
    let folder = Folder::new();
    folder.write("shop.toml", SHOP);
    folder.write(
        "silence.toml",
        "name = \"x\"\nclients = 100000\nrate = 6000\nlength = \"80ms\"\n[trouble]\nkind = \"silence\"\nfrom = \"0s\"\nuntil = \"80ms\"\n",
    );
    let script =
        "ulimit -v 2000000; exec timeout 100 $R simulate shop.toml --scenario silence.toml > out.txt 2> err.txt";
    let ended = shell(folder.path(), script);
    assert!(
        matches!(ended.code, Some(0..=2)),
        "it ends with {:?} within 2 GB (a signal: out of memory; 124: 100 s)",
        ended.code
    );
}
