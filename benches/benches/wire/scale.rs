//! How much is done.

use std::env;

#[derive(Clone, Copy)]
pub struct Scale {
    pub quick: bool,
}

impl Scale {
    /// `--quick`: a tenth of everything, to see that it works.
    pub fn asked() -> Self {
        Scale { quick: env::args().any(|word| word == "--quick") }
    }

    /// This much of it, where all is done.
    pub fn of(self, much: usize) -> usize {
        if self.quick { much.div_ceil(10) } else { much }
    }
}
