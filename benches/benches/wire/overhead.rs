//! What each adds to a client alone.

use redial_benches::report::Table;

/// What a call costs each of them: the client alone first, then redial, then its peers.
pub struct Calls<'a> {
    pub names: &'a [&'a str],
    /// Instructions; `None` where they are not counted.
    pub instructions: Option<Vec<f64>>,
    /// The processor's nanoseconds; `None` where the system does not say.
    pub cpu: Option<Vec<f64>>,
}

impl Calls<'_> {
    /// The bar is on redial's share of instructions, which do not depend on what else the machine does.
    pub fn table(&self, most: f64) -> Table {
        let mut table = Table::new(["", "instructions", "over it", "CPU over it"]);
        let of_first =
            |figures: &Option<Vec<f64>>, write: fn(f64) -> String| or_dash(figures.as_ref().map(|all| write(all[0])));
        let instructions = of_first(&self.instructions, |count| format!("{count:.0}"));
        let cpu = of_first(&self.cpu, |time| format!("{:.1} µs", time / 1000.0));
        table.row([self.names[0].into(), instructions, String::new(), cpu]);
        for (place, name) in self.names.iter().enumerate().skip(1) {
            let more = self.instructions.as_ref().map(|all| format!("+{:.0}", all[place] - all[0]));
            let over = share(&self.instructions, place);
            let cells = [(*name).into(), or_dash(more), percent(over), percent(share(&self.cpu, place))];
            match over {
                Some(over) if place == 1 => {
                    table.held(cells, &format!("instructions {}", percent(Some(most))), over <= most)
                }
                _ => table.row(cells),
            }
        }
        table
    }
}

fn share(figures: &Option<Vec<f64>>, place: usize) -> Option<f64> {
    figures.as_ref().map(|all| all[place] / all[0] - 1.0)
}

/// A share more, or less.
pub fn percent(share: Option<f64>) -> String {
    or_dash(share.map(|share| format!("{:+.1} %", share * 100.0)))
}

/// A figure, where there is one.
pub fn or_dash(figure: Option<String>) -> String {
    figure.unwrap_or_else(|| "-".into())
}
