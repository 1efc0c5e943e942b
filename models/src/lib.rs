//! The budget's atomics under every interleaving: `RUSTFLAGS="--cfg redial_loom" cargo test`, in this folder.
#![forbid(unsafe_code)]
