//! The page that `cargo bench` writes: `BENCHMARKS.md`, a section for each benchmark, each of which mends its own.

use std::{
    fmt::Write as _,
    fs,
    io::IsTerminal,
    path::{Path, PathBuf},
};

use crate::machine;

/// The sections, in the page's order.
const SECTIONS: [&str; 5] = ["cost", "memory", "wire", "growth", "storm"];

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
        assert!(SECTIONS.contains(&section), "{section} is no section of the page");
        let mut report = Report { section, text: String::new(), missed: 0 };
        report.say(&format!("## {title}\n\n{}. `cargo bench --bench {section}`\n", machine::line()));
        report
    }

    /// A paragraph, printed and kept.
    pub fn say(&mut self, text: &str) {
        println!("{text}");
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// A table, printed in columns and kept.
    pub fn table(&mut self, table: &Table) {
        self.missed += table.missed;
        let text = table.markdown();
        print!("{}\n", painted(&text));
        self.text.push_str(&text);
        self.text.push('\n');
    }

    /// Mends the section in `BENCHMARKS.md`.
    pub fn write(self) {
        let path = root().join("BENCHMARKS.md");
        let before = fs::read_to_string(&path).unwrap_or_default();
        let mut page = String::from(HEAD);
        for section in SECTIONS {
            let kept = between(&before, section);
            let text = if section == self.section { Some(self.text.trim()) } else { kept };
            if let Some(text) = text {
                write!(page, "\n<!-- {section} -->\n\n{}\n\n<!-- end of {section} -->\n", text.trim()).expect("a string");
            }
        }
        fs::write(&path, page).expect("BENCHMARKS.md is written");
        println!("{} bars missed; BENCHMARKS.md has the section", self.missed);
    }
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root").to_path_buf()
}

fn between<'a>(page: &'a str, section: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("<!-- {section} -->"))?;
    Some(rest.split_once(&format!("<!-- end of {section} -->"))?.0)
}

/// Rows of figures, with a mark at the end of those that have a bar.
pub struct Table {
    rows: Vec<Vec<String>>,
    missed: usize,
}

impl Table {
    /// The columns' names; those of bar and mark follow by themselves.
    pub fn new<const N: usize>(columns: [&str; N]) -> Self {
        let columns = columns.into_iter().chain(["bar", ""]).map(String::from);
        Table { rows: vec![columns.collect()], missed: 0 }
    }

    /// A row without a bar.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into_iter().chain([String::new(), String::new()]).collect());
    }

    /// A row with a bar, and whether it is held.
    pub fn held<const N: usize>(&mut self, cells: [String; N], bar: &str, held: bool) {
        self.missed += usize::from(!held);
        let mark = if held { "✓" } else { "✗" };
        self.rows.push(cells.into_iter().chain([bar.to_string(), mark.to_string()]).collect());
    }

    /// As Markdown, in columns as wide as their widest cell.
    fn markdown(&self) -> String {
        let count = self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
        let widths: Vec<usize> = (0..count).map(width).collect();
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let fill = " ".repeat(width - cell.chars().count());
                let (left, right) = if column == 0 { ("", &fill[..]) } else { (&fill[..], "") };
                write!(text, "| {left}{cell}{right} ").expect("a string");
            }
            text.push_str("|\n");
            if index == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let dashes = "-".repeat(width - usize::from(column > 0));
                    text.push_str(&if column == 0 { format!("| {dashes} ") } else { format!("| {dashes}: ") });
                }
                text.push_str("|\n");
            }
        }
        text
    }
}

/// Marks in colour, where a person looks on.
fn painted(text: &str) -> String {
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) || !std::io::stdout().is_terminal() {
        return text.to_string();
    }
    text.replace('✓', "\x1b[32m✓\x1b[0m").replace('✗', "\x1b[31m✗\x1b[0m")
}
