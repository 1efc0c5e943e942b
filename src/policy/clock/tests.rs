use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Clock;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn the_system_clock_goes_with_the_system() {
    let before = SystemTime::now();
    let now = Clock::default().now();
    assert!(before <= now && now <= SystemTime::now());
}

#[test]
fn a_fixed_clock_stands() {
    assert_eq!(Clock::fixed(UNIX_EPOCH).now(), UNIX_EPOCH);
}

#[test]
fn a_hand_moves_all_clones() {
    let (clock, hand) = Clock::settable(UNIX_EPOCH);
    let clone = clock.clone();
    hand.advance(5 * SECOND);
    assert_eq!(clone.now(), UNIX_EPOCH + 5 * SECOND);
    hand.set(UNIX_EPOCH + SECOND);
    assert_eq!(clock.now(), UNIX_EPOCH + SECOND);
    hand.advance(Duration::MAX);
    assert_eq!(clock.now(), UNIX_EPOCH + SECOND);
}

#[test]
fn following_tokio_works_outside_a_runtime() {
    assert!(Clock::following_tokio(UNIX_EPOCH).now() >= UNIX_EPOCH);
}

#[tokio::test(start_paused = true)]
async fn following_tokio_jumps_with_paused_time() {
    let clock = Clock::following_tokio(UNIX_EPOCH);
    tokio::time::sleep(90 * SECOND).await;
    assert_eq!(clock.now(), UNIX_EPOCH + 90 * SECOND);
}
