//! Streams and sinks at a rate.

use std::task::{Context, Waker};

use futures::{Sink, SinkExt, Stream, StreamExt, sink, stream};

use crate::support::*;

#[test]
fn a_stream_passes_one_item_an_interval() {
    let (clock, limiter) = bucket(Quota::per_second(10).burst(2));
    let items = limiter.with_timer(&clock).stream(stream::iter(0..5));
    assert_eq!(items.size_hint(), (5, Some(5)));
    let times = items.map(|item| (item, millis(clock.now())));
    let seen: Vec<_> = run(&clock, times.collect());
    assert_eq!(seen, [(0, 0), (1, 0), (2, 100), (3, 200), (4, 300)]);
}

#[test]
fn a_stream_without_an_item_takes_no_permit_and_loses_no_item() {
    let (clock, limiter) = bucket(Quota::per_second(10).burst(1));
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    let mut items = Box::pin(limiter.with_timer(&clock).stream(receiver));
    assert!(poll(pin!(items.next())).is_pending());
    assert_eq!(limiter.available(), 1);
    for item in ["a", "b"] {
        sender.unbounded_send(item).expect("there is room");
    }
    assert_eq!(poll(pin!(items.next())), Poll::Ready(Some("a")));
    // The future that waits for it is dropped and created again. The item is still there.
    for _ in 0..2 {
        assert!(poll(pin!(items.next())).is_pending());
        let expected = (1, Some(tick(SECOND / 10)));
        assert_eq!((clock.sleepers(), clock.next_sleeper()), expected);
    }
    assert_eq!(items.size_hint(), (1, None));
    clock.set(tick(SECOND / 10));
    assert_eq!(poll(pin!(items.next())), Poll::Ready(Some("b")));
    sender.unbounded_send("c").expect("there is room");
    assert!(poll(pin!(items.next())).is_pending());
    drop(items);
    assert_eq!(clock.sleepers(), 0);
    let next = limiter.reserve(1).expect("its place is free");
    assert_eq!(next.due(), tick(SECOND / 5));
}

#[test]
fn a_stream_continues_when_a_stuck_limiter_is_reset() {
    let (clock, limiter) = bucket(Quota::per_second(10).burst(1));
    limiter.charge(u64::MAX);
    let mut items = Box::pin(limiter.with_timer(&clock).stream(stream::iter(["a", "b"])));
    assert!(poll(pin!(items.next())).is_pending());
    assert_eq!(clock.sleepers(), 1);
    limiter.reset();
    assert_eq!(poll(pin!(items.next())), Poll::Ready(Some("a")));
    assert_eq!(clock.sleepers(), 0);
    // It asks again from time to time.
    limiter.charge(u64::MAX);
    assert!(poll(pin!(items.next())).is_pending());
    limiter.reset();
    assert_eq!(run(&clock, items.next()), Some("b"));
}

#[test]
fn a_sink_is_ready_with_a_permit_and_returns_unused_ones() {
    let (clock, limiter) = bucket(Quota::per_second(10).burst(1));
    let mut items = Box::pin(limiter.with_timer(&clock).sink(sink::drain::<u8>()));
    assert!(poll(pin!(items.send(1))).is_ready());
    assert!(poll(pin!(items.send(2))).is_pending());
    assert!(run(&clock, items.send(3)).is_ok());
    assert_eq!(clock.now(), tick(SECOND / 10));
    clock.set(tick(SECOND / 5));
    let mut context = Context::from_waker(Waker::noop());
    assert!(items.as_mut().poll_ready(&mut context).is_ready());
    assert_eq!(limiter.available(), 0);
    drop(items);
    assert_eq!(limiter.available(), 1);
}

#[test]
fn a_failed_or_closed_sink_holds_no_permit() {
    /// Fails at the second call.
    struct Fails(u32);

    impl Sink<u8> for Fails {
        type Error = ();

        fn poll_ready(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), ()>> {
            self.0 += 1;
            Poll::Ready(if self.0 == 2 { Err(()) } else { Ok(()) })
        }

        fn start_send(self: Pin<&mut Self>, _: u8) -> Result<(), ()> {
            Ok(())
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), ()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), ()>> {
            Poll::Ready(Ok(()))
        }
    }

    let (clock, limiter) = bucket(Quota::per_second(10).burst(3));
    let mut context = Context::from_waker(Waker::noop());
    let mut sink = pin!(limiter.with_timer(&clock).sink(Fails(0)));
    assert_eq!(sink.as_mut().poll_ready(&mut context), Poll::Ready(Err(())));
    assert_eq!(limiter.available(), 3);
    assert_eq!(sink.as_mut().poll_ready(&mut context), Poll::Ready(Ok(())));
    assert_eq!(limiter.available(), 2);
    assert_eq!(sink.as_mut().poll_close(&mut context), Poll::Ready(Ok(())));
    assert_eq!(limiter.available(), 3);
}

#[test]
fn a_sink_used_without_poll_ready_goes_into_debt() {
    let (clock, limiter) = bucket(Quota::per_second(10).burst(3));
    let mut sink = pin!(limiter.with_timer(&clock).sink(sink::drain::<u8>()));
    for _ in 0..100 {
        sink.as_mut().start_send(1).expect("a drain takes all");
    }
    assert_eq!(limiter.charge(0).debt(), 97);
}
