//! What became of it all.

use std::{collections::BTreeMap, fmt};

use redial_jobs::{FailureClass, Filter, JobRow, JobStore, SqlStore, State};

pub async fn all_rows(store: &SqlStore) -> Vec<JobRow> {
    let mut rows: Vec<JobRow> = Vec::new();
    loop {
        let before = rows.last().map(|row| row.id);
        let page = store.list(&Filter { before, limit: Some(1000), ..Filter::default() }).await.unwrap();
        if page.is_empty() {
            return rows;
        }
        rows.extend(page);
    }
}

/// Whether the newest job of each target is COMPLETED or DEAD.
pub fn settled(rows: &[JobRow], targets: u32) -> bool {
    let mut newest = BTreeMap::new();
    for row in rows {
        newest.entry(row.target.as_str()).or_insert(row.state);
    }
    newest.len() == targets as usize && newest.values().all(|state| matches!(state, State::Completed | State::Dead))
}

pub struct Verdict {
    rows: usize,
    completed: usize,
    dead: usize,
    ghosts: usize,
    sweeps: Vec<[u32; 3]>,
    refused: u32,
    settled: bool,
    /// Each must be none.
    doubled: usize,
    two_active: i64,
    more_than_one_successor: usize,
    lost: usize,
    beyond_the_limit: usize,
}

impl Verdict {
    pub fn of(rows: &[JobRow], sweeps: &[[u32; 3]], refused: u32, two_active: i64, settled: bool) -> Self {
        let mut targets: BTreeMap<&str, Vec<&JobRow>> = BTreeMap::new();
        let mut successors: BTreeMap<_, usize> = BTreeMap::new();
        for row in rows {
            targets.entry(&row.target).or_default().push(row);
            if let Some(parent) = row.parent {
                *successors.entry(parent).or_default() += 1;
            }
        }
        let of_state = |state: State| rows.iter().filter(|row| row.state == state).count();
        let targets_where = |wrong: &dyn Fn(&[&JobRow]) -> bool| targets.values().filter(|rows| wrong(rows)).count();
        let failed = |row: &&&JobRow| {
            matches!(row.state, State::Failed | State::Dead) && row.failure != Some(FailureClass::Ghost)
        };
        let completed = |row: &&&JobRow| row.state == State::Completed;
        Self {
            rows: rows.len(),
            completed: targets_where(&|rows| rows.iter().any(|row| row.state == State::Completed)),
            dead: of_state(State::Dead),
            ghosts: rows.iter().filter(|row| row.failure == Some(FailureClass::Ghost)).count(),
            sweeps: sweeps.to_vec(),
            refused,
            settled,
            doubled: targets_where(&|rows| rows.iter().filter(completed).count() > 1),
            two_active,
            more_than_one_successor: successors.values().filter(|count| **count > 1).count(),
            lost: targets_where(&|rows| {
                !rows.iter().any(|row| {
                    matches!(row.state, State::Completed | State::Dead)
                        || row.state.is_active()
                        || row.retry_at.is_some()
                })
            }),
            beyond_the_limit: targets_where(&|rows| rows.iter().filter(failed).count() > 3),
        }
    }

    pub fn must_hold(self) {
        assert!(self.settled, "every target ends: {self}");
        let wrong = [self.doubled, self.more_than_one_successor, self.lost, self.beyond_the_limit];
        assert_eq!((wrong, self.two_active), ([0; 4], 0), "{self}");
        assert!(self.ghosts > 0 && self.refused > 0, "workers died, and returned: {self}");
    }

    pub fn must_find_doubles(self) {
        assert!(self.doubled > 0, "{self}");
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} jobs, {} targets completed, {} dead", self.rows, self.completed, self.dead)?;
        writeln!(f, "  {} ghosts, {} of them returned and were refused", self.ghosts, self.refused)?;
        for [recovered, ghosts, overtaken] in &self.sweeps {
            writeln!(f, "  a sweeper recovered {recovered}, found {ghosts} ghosts, was overtaken {overtaken} times")?;
        }
        writeln!(f, "  {:>3} targets seen with two active jobs at once", self.two_active)?;
        for (count, what) in [
            (self.doubled, "targets completed twice"),
            (self.more_than_one_successor, "failures with two successors"),
            (self.lost, "targets lost"),
            (self.beyond_the_limit, "targets with more failures than the limit"),
        ] {
            writeln!(f, "  {count:>3} {what}")?;
        }
        Ok(())
    }
}
