//! What the command line asks for. `cargo bench` itself adds `--bench`, which says nothing.

use std::env;

/// `--quick`: few rounds, for a look whether all still runs. Nothing is written.
pub fn quick() -> bool {
    env::args().any(|word| word == "--quick")
}

/// As many rounds as make a steady median, or as few as show that it runs.
pub fn rounds(many: usize) -> usize {
    if quick() { 3 } else { many }
}
