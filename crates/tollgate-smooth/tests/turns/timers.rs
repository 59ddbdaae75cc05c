//! Futures that wait for a turn, on tokio's paused time.

use tokio::time::Instant;
use tollgate::clock::TokioClock;
use tollgate::wait::TokioTimer;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn turns_follow_paused_time() {
    let limiter = SmoothBursty::with_clock(1.0 / 60.0, TokioClock).expect("a rate");
    let start = Instant::now();
    for minutes in 0..5 {
        let turn = limiter.acquire_with_timer(TokioTimer, 1).await;
        assert!(turn.is_ok());
        assert_eq!(start.elapsed(), Duration::from_secs(60 * minutes));
    }
}

/// Otherwise a minute of real time would have to pass.
#[tokio::test(start_paused = true)]
async fn a_clock_that_the_timer_does_not_follow_is_an_error() {
    let start = Instant::now();
    let limiter = SmoothBursty::new(1.0 / 60.0).expect("a rate");
    let first = limiter.acquire_with_timer(TokioTimer, 1).await;
    assert!(first.is_ok_and(|turn| turn.due() == turn.at()));
    let denied = limiter.acquire_with_timer(TokioTimer, 1).await;
    assert!(matches!(
        denied,
        Err(Denied::TimerMismatch { requested: 1, .. })
    ));
    assert!(start.elapsed() < Duration::from_secs(3600));
}
