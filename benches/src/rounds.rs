//! Times: medians of rounds that take turns, so that a machine that drifts moves all alike.

/// The median of each of the contenders, over as many rounds; each round asks every contender once.
pub fn medians<const N: usize>(rounds: usize, mut measure: impl FnMut(usize) -> f64) -> [f64; N] {
    let mut each = [const { Vec::new() }; N];
    for _ in 0..rounds {
        for (who, figures) in each.iter_mut().enumerate() {
            figures.push(measure(who));
        }
    }
    each.map(median)
}

/// The one in the middle.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
