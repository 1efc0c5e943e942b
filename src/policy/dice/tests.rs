use rand::Rng;

use super::Dice;

fn rolls(mut dice: Dice) -> [u64; 4] {
    std::array::from_fn(|_| dice.next_u64())
}

#[test]
fn a_seed_gives_the_same_rolls_to_the_same_call() {
    assert_eq!(rolls(Dice::of_wait(Some(7), 3)), rolls(Dice::of_wait(Some(7), 3)));
}

#[test]
fn calls_and_seeds_share_no_rolls() {
    let mut all: Vec<u64> =
        (0..20).flat_map(|seed| (0..20).map(move |call| Dice::of_wait(Some(seed), call))).flat_map(rolls).collect();
    let rolled = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), rolled);
}

#[test]
fn without_a_seed_calls_are_independent() {
    assert_ne!(rolls(Dice::of_wait(None, 0)), rolls(Dice::of_wait(None, 0)));
}

#[test]
fn a_seed_gives_these_rolls_for_ever() {
    // A change here changes the waits of every test that names a seed.
    assert_eq!(
        rolls(Dice::of_wait(Some(1), 0)),
        [2_736_766_839_171_971_727, 1_646_259_440_506_682_318, 16_150_691_655_080_532_735, 16_888_538_303_744_631_816,]
    );
}

#[test]
fn dice_move_between_threads() {
    fn movable<T: Send + Sync>() {}
    movable::<Dice>();
}
