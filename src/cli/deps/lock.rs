//! `Cargo.lock`: which packages, and who brings them.

use std::{
    collections::{HashMap, VecDeque},
    path::Path,
};

use serde::Deserialize;

use crate::cli::input;

/// The largest lock file: that of a thousand crates is a hundredth of it.
const LARGEST: u64 = 16 * 1024 * 1024;

#[derive(Deserialize)]
pub(super) struct Lock {
    #[serde(default)]
    package: Vec<Package>,
}

#[derive(Deserialize)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// None is a member of the workspace, or a path.
    source: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
}

impl Package {
    /// Major, minor, patch; a number that cannot be read is the highest, so that nothing is missed.
    pub(super) fn numbers(&self) -> (u64, u64, u64) {
        let plain = self.version.split(['-', '+']).next().unwrap_or_default();
        let mut numbers = plain.split('.').map(|number| number.parse().unwrap_or(u64::MAX));
        let mut next = || numbers.next().unwrap_or(0);
        (next(), next(), next())
    }
}

impl Lock {
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let text = input::text(path, LARGEST)?;
        let lock: Lock =
            toml::from_str(&text).map_err(|error| format!("`{}` is no Cargo.lock: {error}", path.display()))?;
        if lock.package.is_empty() {
            return Err(format!("`{}` is no Cargo.lock: it has no packages", path.display()));
        }
        Ok(lock)
    }

    pub(super) fn packages(&self) -> &[Package] {
        &self.package
    }

    /// By which packages each one is brought in: the shortest way from a member of the workspace, each as its number in
    /// [`packages`](Self::packages), and the one before it.
    pub(super) fn brought_by(&self) -> Vec<Option<usize>> {
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, package) in self.package.iter().enumerate() {
            by_name.entry(&package.name).or_default().push(number);
        }
        let mut from = vec![None; self.package.len()];
        let mut seen = vec![false; self.package.len()];
        let roots = self.package.iter().enumerate().filter(|(_, package)| package.source.is_none());
        let mut queue: VecDeque<usize> = roots.map(|(number, _)| number).collect();
        queue.iter().for_each(|root| seen[*root] = true);
        while let Some(number) = queue.pop_front() {
            for dependency in &self.package[number].dependencies {
                // `name`, `name version` or `name version (source)`.
                let mut words = dependency.split(' ');
                let (name, version) = (words.next().unwrap_or_default(), words.next());
                let named = by_name.get(name).into_iter().flatten().copied();
                for found in named.filter(|found| version.is_none_or(|version| self.package[*found].version == version))
                {
                    if !seen[found] {
                        seen[found] = true;
                        from[found] = Some(number);
                        queue.push_back(found);
                    }
                }
            }
        }
        from
    }
}
