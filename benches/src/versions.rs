//! Which versions are compared: those that `Cargo.lock` holds this package to.

use std::{collections::HashMap, fs};

use crate::report::root;

/// `name version` of redial and of each of these crates, with commas between.
pub fn line(peers: &[&str]) -> String {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap_or_default();
    let locked = locked(&lock);
    let named = |name: &&str| format!("{name} {}", locked.get(*name).map_or("unknown", String::as_str));
    ["redial"].iter().chain(peers).map(named).collect::<Vec<_>>().join(", ")
}

/// What this package depends on. Where the tree holds several versions of a crate, the list of dependencies says which.
fn locked(lock: &str) -> HashMap<String, String> {
    let field = |package: &str, name: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))?;
        Some(line.trim_matches('"').to_string())
    };
    let packages: Vec<(String, String, &str)> = lock
        .split("[[package]]")
        .filter_map(|package| Some((field(package, "name")?, field(package, "version")?, package)))
        .collect();
    let own = packages.iter().find(|(name, ..)| name == "redial-benches").map_or("", |(.., package)| *package);
    let asked = own.lines().filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\","));
    asked
        .filter_map(|asked| match asked.split_once(' ') {
            Some((name, version)) => Some((name.to_string(), version.to_string())),
            None => packages
                .iter()
                .find(|(name, ..)| name == asked)
                .map(|(name, version, _)| (name.clone(), version.clone())),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::locked;

    #[test]
    fn of_several_versions_the_one_that_this_package_asks_for() {
        let lock = "version = 4\n\n[[package]]\nname = \"tower\"\nversion = \"0.4.13\"\n\n[[package]]\nname = \"tower\"\n\
            version = \"0.5.3\"\n\n[[package]]\nname = \"backon\"\nversion = \"1.6.0\"\n\n[[package]]\n\
            name = \"redial-benches\"\nversion = \"0.0.0\"\ndependencies = [\n \"backon\",\n \"tower 0.5.3\",\n]\n";
        let locked = locked(lock);
        assert_eq!(locked.get("tower").map(String::as_str), Some("0.5.3"));
        assert_eq!(locked.get("backon").map(String::as_str), Some("1.6.0"));
        assert_eq!(locked.len(), 2);
    }
}
