use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_hold_ends_when_it_was_told_to_and_is_never_shortened() {
    let hold = Hold::new();
    let start = Instant::now();
    assert_eq!(hold.remaining(start), None);

    hold.extend(start, 30 * SECOND);
    hold.clone().extend(start, 10 * SECOND);
    assert_eq!(hold.remaining(start + 12 * SECOND), Some(18 * SECOND));
    assert_eq!(hold.remaining(start + 30 * SECOND), None);

    hold.extend(start + 40 * SECOND, 5 * SECOND);
    assert_eq!(hold.remaining(start + 44 * SECOND), Some(SECOND));
}

#[tokio::test(start_paused = true)]
async fn an_absurd_wait_is_a_day_and_can_be_ended() {
    let hold = Hold::new();
    let now = Instant::now();
    hold.extend(now, Duration::MAX);
    assert_eq!(hold.remaining(now), Some(86_400 * SECOND));
    hold.release();
    assert_eq!(hold.remaining(now), None);
}
