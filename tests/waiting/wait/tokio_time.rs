//! Tokio's timer. Types that hold its sleeps are `Unpin`, waiting follows tokio's paused time with
//! `TokioClock`, and a limiter on another clock reports that its timer does not follow it.

use futures::{SinkExt, StreamExt, sink, stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;
use tollgate::clock::Clock;
use tollgate::clock::{SystemClock, TokioClock};
use tollgate::wait::{Jitter, TokioTimer};

use crate::support::*;

fn limiter(quota: Quota) -> Limiter<TokenBucket, TokioClock> {
    Limiter::with_clock(TokenBucket::new(quota).expect("a quota"), TokioClock)
}

#[tokio::test(start_paused = true)]
async fn waiting_follows_paused_time() {
    let limiter = limiter(Quota::per_minute(1));
    let start = Instant::now();
    for minutes in 0..5 {
        limiter
            .with_timer(TokioTimer)
            .acquire()
            .await
            .expect("it comes");
        assert_eq!(start.elapsed(), Duration::from_secs(60 * minutes));
    }
}

#[tokio::test(start_paused = true)]
async fn streams_sinks_and_byte_adapters_are_unpin() {
    let limiter = limiter(Quota::per_second(2).burst(1));
    let on = limiter.with_timer(TokioTimer);
    let start = Instant::now();
    let mut items = on.stream(stream::iter(["a", "b"]));
    assert_eq!(items.next().await, Some("a"));
    assert_eq!(items.next().await, Some("b"));
    let mut items = on.sink(sink::drain());
    items.send("c").await.expect("it drains");
    assert_eq!(start.elapsed(), Duration::from_secs(1));
    let mut text = String::new();
    let mut reader = on.bytes(&b"4"[..]);
    reader.read_to_string(&mut text).await.expect("it is text");
    let mut writer = on.bytes(Vec::new());
    writer.write_all(b"56").await.expect("there is room");
    assert_eq!((text.as_str(), &writer.inner()[..]), ("4", &b"56"[..]));
}

/// Otherwise a minute of real time would have to pass.
#[tokio::test(start_paused = true)]
async fn a_clock_that_the_timer_does_not_follow_is_an_error() {
    let start = Instant::now();
    let limiter = Limiter::token_bucket(Quota::per_minute(1)).expect("a quota");
    for jitter in [Jitter::NONE, Jitter::up_to(Duration::from_secs(50))] {
        let on = limiter.with_timer(TokioTimer).jitter(jitter);
        let _ = limiter.try_acquire();
        let denied = on.acquire().await.expect_err("the clock stands still");
        assert!(matches!(denied, Denied::TimerMismatch { requested: 1, .. }));
        assert_eq!((denied.retry_after(), denied.is_permanent()), (None, true));
        assert!(denied.to_string().contains("TokioClock"));
        // Its permits came back.
        assert_eq!(limiter.at(SystemClock.now()).waiting(), 0);
    }
    let on = limiter.with_timer(TokioTimer);
    let denied = on.acquire_timeout(1, Duration::from_secs(200)).await;
    assert!(matches!(denied, Err(Denied::TimerMismatch { .. })));
    let mut text = String::new();
    let mut reader = limiter.with_timer(TokioTimer).bytes(&b"4"[..]);
    let read = reader.read_to_string(&mut text).await;
    assert!(read.is_err_and(|error| error.to_string().contains("TokioClock")));
    assert!(start.elapsed() < Duration::from_secs(3600));
}
