//! The fuzz targets over their kept corpus, and over changes to it for a few seconds. `fuzz/README.md` says how to run
//! them under a fuzzer.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use rand::{Rng, RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};

mod targets;

use targets::TARGETS;

/// How long each target is fed with changed inputs.
const EACH: Duration = Duration::from_secs(2);

/// The inputs kept for a target: at least one, or the test shows nothing.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// A few random changes: bytes replaced, cut, repeated, joined with another input.
fn change(input: &[u8], other: &[u8], dice: &mut impl Rng) -> Vec<u8> {
    let mut input = input.to_vec();
    for _ in 0..dice.random_range(1..6) {
        let at = dice.random_range(0..=input.len());
        match dice.random_range(0..5) {
            0 if at < input.len() => input[at] = dice.random(),
            1 => input.truncate(at),
            2 => input.insert(
                at,
                *[b'0', b'9', b'.', b'-', b' ', b'{', b'}', b'/', b'*', 0xff, 0].get(dice.random_range(0..11)).unwrap(),
            ),
            3 => input.extend_from_slice(&other[dice.random_range(0..=other.len())..]),
            _ => input.extend_from_within(at..),
        }
        input.truncate(2000);
    }
    input
}

#[test]
fn every_target_over_its_corpus() {
    for (name, target) in TARGETS {
        let corpus = corpus(name);
        for input in &corpus {
            target(input);
        }
        let mut dice = Xoshiro256PlusPlus::seed_from_u64(7);
        let (start, mut inputs) = (Instant::now(), 0_u64);
        while start.elapsed() < EACH {
            let one = &corpus[dice.random_range(0..corpus.len())];
            let other = &corpus[dice.random_range(0..corpus.len())];
            target(&change(one, other, &mut dice));
            inputs += 1;
        }
        println!("{name}: {} kept inputs, {inputs} changed ones", corpus.len());
    }
}
