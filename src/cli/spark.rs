//! A line of small bars.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// As many as stand beside a name on a terminal.
const WIDTH: usize = 40;

/// These values, from 0 to `most`: one bar for one or more of them, which shows the highest.
pub(super) fn spark(values: impl Iterator<Item = f64>, most: f64) -> String {
    let values: Vec<f64> = values.collect();
    let values = values.chunks(values.len().div_ceil(WIDTH).max(1));
    values
        .map(|some| {
            let highest = some.iter().copied().fold(0.0, f64::max);
            let level = if most > 0.0 { highest / most * BARS.len() as f64 } else { 0.0 };
            // The highest value fills its bar.
            BARS[(level.ceil() as usize).clamp(1, BARS.len()) - 1]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::spark;

    #[test]
    fn from_nothing_to_all() {
        assert_eq!(spark((0..=8).map(f64::from), 8.0), "▁▁▂▃▄▅▆▇█");
        assert_eq!(spark([0.0; 3].into_iter(), 0.0), "▁▁▁");
        assert_eq!(spark([].into_iter(), 1.0), "");
        // A peak is seen, however long the run is.
        let mut long = vec![1.0; 400];
        long[123] = 8.0;
        let line = spark(long.into_iter(), 8.0);
        assert_eq!((line.chars().count(), line.chars().position(|bar| bar == '█')), (40, Some(12)));
    }
}
