//! Why a contract does not load.

use std::{fmt, sync::Arc};

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};

use super::{
    place::Sources,
    problem::{Finding, Problem},
};

/// How many problems are printed; a file with more is read from its start anyway.
const SHOWN: usize = 50;

/// A contract that does not load: every problem of every file, each with its line and how to mend it.
///
/// `Display` and `Debug` print it whole, for `unwrap` and `main`. It is a [`miette::Diagnostic`] too.
#[derive(Clone)]
pub struct ContractError {
    findings: Vec<Finding>,
}

impl ContractError {
    pub(crate) fn new(problems: Vec<Problem>, sources: &Arc<Sources>) -> Self {
        let errors = problems.into_iter().filter(Problem::is_error);
        ContractError { findings: errors.map(|problem| Finding::new(problem, sources)).collect() }
    }

    /// Every problem, in the order of the files.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

/// A finding as it is printed: the line, underlined, and how to mend it.
pub(crate) fn graphical(colours: bool) -> GraphicalReportHandler {
    let theme = if colours { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    GraphicalReportHandler::new_themed(theme).with_width(110).with_links(false).with_context_lines(1)
}

impl fmt::Display for ContractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.findings.len();
        write!(f, "the contract has {count} problem{}:", if count == 1 { "" } else { "s" })?;
        for finding in self.findings.iter().take(SHOWN) {
            writeln!(f)?;
            graphical(false).render_report(f, finding)?;
        }
        if count > SHOWN {
            write!(f, "\nand {} more", count - SHOWN)?;
        }
        Ok(())
    }
}

impl fmt::Debug for ContractError {
    // As `Display`: it is what `unwrap` and `main` print.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ContractError {}

impl Diagnostic for ContractError {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.findings.iter().map(|finding| finding as &dyn Diagnostic)))
    }
}
