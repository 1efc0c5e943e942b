//! The page that `cargo bench` writes: `BENCHMARKS.md`, a section for each benchmark, each of which mends its own.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use crate::{machine, options, table, versions};

pub use crate::table::Table;

/// The sections, in the page's order, and the crates whose versions each names beside redial's.
const SECTIONS: [(&str, &[&str]); 5] = [
    ("cost", &["tower", "tower-resilience-retry", "backon", "tokio"]),
    ("memory", &["tower", "tower-resilience-retry", "backon", "tokio"]),
    ("wire", &["tower", "tower-resilience-retry", "reqwest", "reqwest-middleware", "reqwest-retry", "hyper", "tokio"]),
    ("growth", &["tower", "tower-resilience-retry", "backon", "tokio"]),
    ("storm", &["tower"]),
];

/// What the page says before them.
const HEAD: &str = "\
# Benchmarks

Written by `cargo bench`, which takes every figure anew; `cargo bench --bench cost` mends that section alone. ✓ is a bar
that is held and ✗ one that is missed; rows without a mark have no bar.
";

/// What one benchmark found.
pub struct Report {
    section: &'static str,
    text: String,
    missed: usize,
}

impl Report {
    /// Of one of the page's sections.
    pub fn new(section: &'static str, title: &str) -> Self {
        let (_, peers) = SECTIONS.iter().find(|(name, _)| *name == section).expect("a section of the page");
        let mut report = Report { section, text: String::new(), missed: 0 };
        let (machine, versions) = (machine::line(), versions::line(peers));
        report.say(&format!("## {title}\n\n{machine}; {versions}. `cargo bench --bench {section}`\n"));
        report
    }

    /// Paragraphs, printed and kept.
    pub fn say(&mut self, text: &str) {
        let text = wrapped(text);
        print!("{text}");
        self.text.push_str(&text);
    }

    /// What is said over every table that is not measured here for want of valgrind.
    pub fn without_valgrind(&mut self) {
        self.say("Instructions are not counted: valgrind is not installed.\n");
    }

    /// A table, printed in columns and kept.
    pub fn table(&mut self, table: &Table) {
        self.missed += table.missed;
        let text = table.markdown();
        println!("{}", table::painted(&text));
        self.text.push_str(&text);
        self.text.push('\n');
    }

    /// Mends the section in `BENCHMARKS.md`, unless few rounds were asked for.
    pub fn write(self) {
        if options::quick() {
            println!("--quick: bars missed: {}, which few rounds may do; nothing is written", self.missed);
            return;
        }
        let path = root().join("BENCHMARKS.md");
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::write(&path, mended(&before, self.section, &self.text)).expect("BENCHMARKS.md is written");
        println!("bars missed: {}; BENCHMARKS.md has the section", self.missed);
    }
}

/// The page with this section anew.
fn mended(before: &str, section: &str, text: &str) -> String {
    let mut page = String::from(HEAD);
    for (name, _) in SECTIONS {
        let text = if name == section { Some(text) } else { between(before, name) };
        if let Some(text) = text {
            write!(page, "\n<!-- {name} -->\n\n{}\n\n<!-- end of {name} -->\n", text.trim()).expect("a string");
        }
    }
    page
}

/// In lines as long as the tree's.
fn wrapped(text: &str) -> String {
    const LONGEST: usize = 120;
    let mut wrapped = String::new();
    for paragraph in text.split('\n') {
        let mut column = 0;
        for word in paragraph.split(' ') {
            let length = word.chars().count();
            if column > 0 {
                let fits = column + 1 + length <= LONGEST;
                wrapped.push(if fits { ' ' } else { '\n' });
                column = if fits { column + 1 } else { 0 };
            }
            wrapped.push_str(word);
            column += length;
        }
        wrapped.push('\n');
    }
    wrapped
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root").to_path_buf()
}

fn between<'a>(page: &'a str, section: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("<!-- {section} -->"))?;
    Some(rest.split_once(&format!("<!-- end of {section} -->"))?.0)
}

#[cfg(test)]
mod tests {
    use super::{mended, wrapped};

    #[test]
    fn a_section_is_mended_and_the_others_are_kept() {
        let page = mended(&mended("", "growth", "## It grows\n"), "cost", "## It costs\n");
        assert!(
            page.find("## It costs").is_some_and(|cost| page.find("## It grows").is_some_and(|growth| cost < growth))
        );
        let again = mended(&page, "cost", "## It costs less\n");
        assert_eq!(again, page.replace("It costs", "It costs less"));
        assert_eq!(mended(&again, "cost", "## It costs less"), again);
    }

    #[test]
    fn lines_are_no_longer_than_the_trees() {
        let text = "word ".repeat(50);
        let wrapped = wrapped(&format!("# Head\n\n{}", text.trim()));
        let lines: Vec<&str> = wrapped.lines().collect();
        assert_eq!((lines[0], lines[1], lines[2].len()), ("# Head", "", 119));
        assert_eq!(wrapped.split_whitespace().count(), 52);
    }
}
