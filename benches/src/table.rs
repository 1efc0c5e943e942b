//! Tables of figures, as Markdown.

use std::{fmt::Write as _, io::IsTerminal};

/// Rows of figures, with a mark at the end of those that have a bar.
pub struct Table {
    rows: Vec<Vec<String>>,
    pub(crate) missed: usize,
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
    pub(crate) fn markdown(&self) -> String {
        // Without a bar in any row there is no column for bars, nor for marks.
        let barred = self.rows[1..].iter().any(|row| !row[row.len() - 2].is_empty());
        let count = self.rows[0].len() - if barred { 0 } else { 2 };
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
pub(crate) fn painted(text: &str) -> String {
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) || !std::io::stdout().is_terminal() {
        return text.to_string();
    }
    text.replace('✓', "\x1b[32m✓\x1b[0m").replace('✗', "\x1b[31m✗\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["what", "redial"]);
        table.row(["one".into(), "7".into()]);
        table.held(["another".into(), "1234567".into()], "at most 9", false);
        let expected = "\
            | what    |  redial |       bar |     |\n\
            | ------- | ------: | --------: | --: |\n\
            | one     |       7 |           |     |\n\
            | another | 1234567 | at most 9 |   ✗ |\n";
        assert_eq!((&*table.markdown(), table.missed), (expected, 1));
    }

    #[test]
    fn without_bars_there_is_no_column_for_them() {
        let mut table = Table::new(["what", "redial"]);
        table.row(["one".into(), "7".into()]);
        assert_eq!(table.markdown(), "| what | redial |\n| ---- | -----: |\n| one  |      7 |\n");
    }
}
