//! Streams, sinks and bytes at a rate.

#![cfg(all(feature = "futures", feature = "tokio"))]

use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{SinkExt, Stream, StreamExt, sink, stream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tollgate::{Limiter, ManualClock, Quota, Tick, TokenBucket};

use crate::counting::poll_once;

fn manual(quota: Quota) -> (ManualClock, Limiter<TokenBucket, ManualClock>) {
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(quota).expect("a quota");
    (clock.clone(), Limiter::with_clock(bucket, clock))
}

/// Runs it, and moves the clock to the next sleeper whenever it waits.
fn run<F: Future>(clock: &ManualClock, future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        match poll_once(future.as_mut()) {
            Some(done) => return done,
            None => clock.set(clock.next_sleeper().expect("it waits for the clock")),
        }
    }
}

#[test]
fn a_stream_is_let_through_an_item_an_interval() {
    let (clock, gate) = manual(Quota::per_second(10).burst(2));
    let items = gate.on(&clock).stream(stream::iter(0..5));
    assert_eq!(items.size_hint(), (5, Some(5)));
    let times = items.map(|item| (item, clock_ms(&clock)));
    let seen: Vec<_> = run(&clock, times.collect());
    assert_eq!(seen, [(0, 0), (1, 0), (2, 100), (3, 200), (4, 300)]);
}

fn clock_ms(clock: &ManualClock) -> u64 {
    tollgate::Clock::now(clock).as_nanos() / 1_000_000
}

#[test]
fn a_stream_takes_nothing_while_it_has_no_item_and_loses_none() {
    let (clock, gate) = manual(Quota::per_second(10).burst(1));
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    let mut items = Box::pin(gate.on(&clock).stream(receiver));
    assert!(poll_once(pin!(items.next())).is_none());
    assert_eq!(gate.available(), 1);
    for item in ["a", "b"] {
        sender.unbounded_send(item).expect("there is room");
    }
    assert_eq!(poll_once(pin!(items.next())), Some(Some("a")));
    // What waits for it is dropped, and comes again: the item is still there.
    assert!(poll_once(pin!(items.next())).is_none());
    assert!(poll_once(pin!(items.next())).is_none());
    assert_eq!(clock.next_sleeper(), Some(Tick::from_nanos(100_000_000)));
    clock.set(Tick::from_nanos(100_000_000));
    assert_eq!(poll_once(pin!(items.next())), Some(Some("b")));
    sender.unbounded_send("c").expect("there is room");
    assert!(poll_once(pin!(items.next())).is_none());
    drop(items);
    assert_eq!(clock.sleepers(), 0);
    assert_eq!(
        gate.reserve(1).expect("its place is free").due().as_nanos(),
        200_000_000
    );
}

#[test]
fn a_stream_goes_on_when_a_stuck_limiter_is_reset() {
    let (clock, gate) = manual(Quota::per_second(10).burst(1));
    gate.charge(u64::MAX);
    let mut items = Box::pin(gate.on(&clock).stream(stream::iter(["a"])));
    assert!(poll_once(pin!(items.next())).is_none());
    gate.reset();
    assert_eq!(run(&clock, items.next()), Some("a"));
}

#[test]
fn a_sink_is_ready_when_there_is_a_permit_and_gives_back_what_it_does_not_use() {
    let (clock, gate) = manual(Quota::per_second(10).burst(1));
    let mut items = Box::pin(gate.on(&clock).sink(sink::drain::<u8>()));
    assert!(poll_once(pin!(items.send(1))).is_some());
    assert!(poll_once(pin!(items.send(2))).is_none());
    assert!(run(&clock, items.send(3)).is_ok());
    assert_eq!(clock_ms(&clock), 100);
    clock.advance(Duration::from_millis(100));
    assert!(
        poll_once(pin!(futures::future::poll_fn(|cx| items
            .as_mut()
            .poll_ready_unpin(cx))))
        .is_some()
    );
    assert_eq!(gate.available(), 0);
    drop(items);
    assert_eq!(gate.available(), 1);
}

#[test]
fn bytes_come_at_their_rate_and_never_faster() {
    let (clock, gate) = manual(Quota::per_second(1000).burst(600));
    let source: Vec<u8> = (0..2600).map(|i| i as u8).collect();
    let mut reader = gate.on(&clock).bytes(&source[..]).in_pieces_of(100);
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let n = run(&clock, reader.read(&mut buffer)).expect("it can be read");
        if n == 0 {
            break;
        }
        read.extend_from_slice(&buffer[..n]);
        let allowed = 600 + clock_ms(&clock);
        assert!(read.len() as u64 <= allowed, "{} of {allowed}", read.len());
    }
    assert_eq!(read, source);
    // The end was found with permits for a piece more, which came back.
    assert!(
        (2000..=2100).contains(&clock_ms(&clock)),
        "{}",
        clock_ms(&clock)
    );
}

#[test]
fn bytes_go_at_their_rate() {
    let (clock, gate) = manual(Quota::per_second(1000).burst(100));
    let mut writer = gate.on(&clock).bytes(Vec::new());
    let bytes = [7; 1100];
    run(&clock, writer.write_all(&bytes)).expect("it can be written");
    assert_eq!(writer.inner().len(), 1100);
    assert_eq!(clock_ms(&clock), 1000);
}

/// Never has anything to read.
struct Silent;

impl AsyncRead for Silent {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Poll::Pending
    }
}

#[test]
fn who_has_nothing_to_read_holds_a_piece_at_most() {
    let (clock, gate) = manual(Quota::per_second(1000).burst(100));
    let mut reader = gate.on(&clock).bytes(Silent).in_pieces_of(10);
    let mut buffer = [0; 64];
    for _ in 0..100 {
        assert!(poll_once(pin!(reader.read(&mut buffer))).is_none());
        assert_eq!(gate.available(), 90);
    }
    drop(reader);
    assert_eq!(gate.available(), 100);
}
