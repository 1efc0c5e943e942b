//! How the figures are shown: as a table in Markdown, with a mark where something must be reached.

/// How many jobs a second there must be at least, in batches of 10 and of 100.
#[derive(Clone, Copy)]
pub struct Bars(pub [f64; 2]);

pub const SQLITE: Bars = Bars([18_000.0, 45_000.0]);
pub const POSTGRES: Bars = Bars([11_000.0, 25_000.0]);

/// Within how many milliseconds an idle worker must have a job.
pub const PICK_UP: Option<f64> = Some(50.0);

pub const LEGEND: &str = "✓: at least 18 000 and 45 000 jobs a second in SQLite, 11 000 and 25 000 in PostgreSQL; with \
    200 000 finished jobs in the table, or a backlog of 100 000, at least four fifths of the empty table's; an idle worker \
    has a job within 50 ms.";

pub fn header() {
    println!("| jobs a second         | before             | enqueued | batch 1 |  batch 10 | batch 100 |");
    println!("| ---                   | ---                |     ---: |    ---: |      ---: |      ---: |");
}

/// One line of the table. What must be reached is marked.
pub fn line(name: &str, before: &str, enqueued: Option<f64>, one: Option<f64>, many: [f64; 2], bars: Bars) {
    let plain = |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), thousands);
    let [ten, hundred] = [0, 1].map(|at| marked(&thousands(many[at]), many[at] >= bars.0[at]));
    println!("| {name:<21} | {before:<18} | {:>8} | {:>7} | {ten:>9} | {hundred:>9} |", plain(enqueued), plain(one));
}

/// How long it took, in milliseconds.
pub fn pick_up(name: &str, what: &str, must: Option<f64>, each: Vec<f64>) {
    let longest = each.iter().copied().fold(0.0, f64::max);
    let at_most = format!("{longest:.2} ms");
    let at_most = must.map_or_else(|| at_most.clone(), |must| marked(&at_most, longest <= must));
    println!("| {name:<21} | {what:<38} | {:>6.2} ms | {at_most:>11} |", median(each));
}

pub fn pick_up_header() {
    println!("| idle worker           | from … to …                            |    median |     at most |");
    println!("| ---                   | ---                                    |      ---: |        ---: |");
}

pub fn median(mut each: Vec<f64>) -> f64 {
    each.sort_by(f64::total_cmp);
    each[each.len() / 2]
}

fn marked(figure: &str, is_reached: bool) -> String {
    format!("{figure} {}", if is_reached { '✓' } else { '✗' })
}

fn thousands(rate: f64) -> String {
    let whole = rate.round() as u64;
    match whole / 1000 {
        0 => whole.to_string(),
        thousands => format!("{thousands} {:03}", whole % 1000),
    }
}
