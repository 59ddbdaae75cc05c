//! Bytes at a rate: readers and writers that share a limiter lose no rate, wake-up or permit.

use std::io;
use std::task::{Context, Waker};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use crate::support::*;

/// In debug builds the longer tests are shorter.
const MANY: u64 = debug_or_release(10, 100);

type Answer = Poll<io::Result<()>>;

/// A reader that a closure feeds.
struct Source<F>(F);

impl<F: FnMut(&mut ReadBuf<'_>) -> Answer + Unpin> AsyncRead for Source<F> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Answer {
        self.0(buffer)
    }
}

/// Returns a reader of `size` bytes at a time.
fn messages(size: usize) -> impl AsyncRead + Unpin {
    Source(move |buffer: &mut ReadBuf<'_>| {
        buffer.put_slice(&[1; 4096][..buffer.remaining().min(size)]);
        Poll::Ready(Ok(()))
    })
}

/// Returns a reader that never has data.
fn silent() -> impl AsyncRead + Unpin {
    Source(|_: &mut ReadBuf<'_>| Poll::Pending)
}

/// Returns the number of bytes that are read at once.
fn read(reader: impl AsyncRead + Unpin, most: usize) -> Poll<io::Result<usize>> {
    let mut space = [0; 4096];
    let mut buffer = ReadBuf::new(&mut space[..most]);
    let answer = pin!(reader).poll_read(&mut Context::from_waker(Waker::noop()), &mut buffer);
    answer.map_ok(|()| buffer.filled().len())
}

/// Returns a limiter of a thousand bytes a second.
fn thousand(burst: u64) -> (ManualClock, Bucket) {
    bucket(Quota::per_second(1000).burst(burst))
}

#[test]
fn bytes_are_read_at_the_rate_and_never_faster() {
    let (clock, limiter) = thousand(600);
    let source: Vec<u8> = (0..2600).map(|i| i as u8).collect();
    let mut reader = limiter
        .with_timer(&clock)
        .bytes(&source[..])
        .in_pieces_of(100);
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let n = run(&clock, reader.read(&mut buffer)).expect("it can be read");
        if n == 0 {
            break;
        }
        all.extend_from_slice(&buffer[..n]);
        let allowed = 600 + millis(clock.now());
        assert!(all.len() as u64 <= allowed, "{} of {allowed}", all.len());
    }
    assert_eq!(all, source);
    // The permits for the chunk that found the end come back.
    let took = millis(clock.now());
    assert!((2000..=2100).contains(&took), "{took}");
    drop(reader);
    assert_eq!(limiter.available(), took - 2000);
}

#[test]
fn unused_permits_of_a_read_come_back() {
    let (clock, limiter) = thousand(1000);
    let mut reader = limiter
        .with_timer(&clock)
        .bytes(&[1; 105][..])
        .in_pieces_of(10);
    for (n, left) in [(10, 990), (95, 885)] {
        assert!(matches!(read(&mut reader, 4096), Poll::Ready(Ok(read)) if read == n));
        assert_eq!(limiter.available(), left);
    }
    // Except for one chunk, which comes back at the end.
    drop(reader);
    assert_eq!(limiter.available(), 895);
}

#[test]
fn bytes_are_written_at_the_rate() {
    let (clock, limiter) = thousand(100);
    let mut writer = limiter.with_timer(&clock).bytes(Vec::new());
    run(&clock, writer.write_all(&[7; 1100])).expect("it can be written");
    assert_eq!(writer.inner().len(), 1100);
    assert_eq!(clock.now(), tick(SECOND));
}

#[test]
fn an_idle_reader_holds_at_most_one_chunk_of_permits() {
    let (clock, limiter) = thousand(100);
    let mut reader = limiter.with_timer(&clock).bytes(silent()).in_pieces_of(10);
    for _ in 0..100 {
        assert!(read(&mut reader, 64).is_pending());
        assert_eq!(limiter.available(), 90);
    }
    drop(reader);
    assert_eq!(limiter.available(), 100);
}

#[test]
fn a_reader_and_a_writer_of_one_split_stream_are_both_woken() {
    let (clock, limiter) = thousand(100);
    assert!(limiter.try_acquire_n(100).is_ok());
    let (near, mut far) = tokio::io::duplex(100);
    assert!(poll(pin!(far.write_all(&[1; 100]))).is_ready());
    let (mut reader, mut writer) = tokio::io::split(limiter.with_timer(&clock).bytes(near));
    let wake_counters = [(); 2].map(|()| Arc::new(WakeCounter::default()));
    let [by_reader, by_writer] = wake_counters
        .each_ref()
        .map(|wake_counter| Waker::from(Arc::clone(wake_counter)));
    let mut space = [0; 100];
    let mut buffer = ReadBuf::new(&mut space);
    let mut go_on = |reads: bool| match reads {
        true => {
            let mut context = Context::from_waker(&by_reader);
            Pin::new(&mut reader)
                .poll_read(&mut context, &mut buffer)
                .is_ready()
        }
        false => {
            let mut context = Context::from_waker(&by_writer);
            Pin::new(&mut writer)
                .poll_write(&mut context, &[0; 100])
                .is_ready()
        }
    };
    assert!(!go_on(true) && !go_on(false));
    // An executor: it polls woken tasks, and advances the clock when none is woken.
    let (mut seen, mut ready) = ([0; 2], [false; 2]);
    for _ in 0..100 {
        let wakes = wake_counters
            .each_ref()
            .map(|wake_counter| wake_counter.wakes());
        match (0..2).find(|&i| wakes[i] > seen[i] && !ready[i]) {
            Some(i) => {
                seen[i] = wakes[i];
                ready[i] = go_on(i == 0);
            }
            None => clock.set(clock.next_sleeper().unwrap_or(clock.now())),
        }
    }
    assert_eq!(ready, [true; 2], "woken {seen:?}, at {clock:?}");
}

#[test]
fn readers_of_short_messages_together_get_the_full_rate() {
    for (readers, size, burst) in [(1, 10, 1000), (8, 10, 5000), (8, 100, 1000), (8, 512, 1000)] {
        let (clock, limiter) = thousand(burst);
        assert!(limiter.try_acquire_n(burst).is_ok());
        let mut all: Vec<_> = (0..readers)
            .map(|_| limiter.with_timer(&clock).bytes(messages(size)))
            .collect();
        let (end, mut moved) = (MANY * SECOND, 0);
        while clock.now() < tick(end) {
            let before = moved;
            for reader in &mut all {
                if let Poll::Ready(read) = read(reader, 4096) {
                    moved += read.expect("it can be read");
                }
            }
            assert!(moved as u64 <= burst + millis(clock.now()), "{moved}");
            if moved == before {
                clock.set(clock.next_sleeper().expect("all wait"));
            }
        }
        let least = MANY as usize * 900;
        assert!(moved > least, "{moved}: {readers}, {size}, {burst}");
    }
}

/// Nine idle readers with a spurious wake-up every millisecond, and one busy one.
#[test]
fn idle_readers_take_nothing_from_a_busy_one() {
    let (clock, limiter) = thousand(1000);
    assert!(limiter.try_acquire_n(1000).is_ok());
    let mut idle: Vec<_> = (0..9)
        .map(|_| limiter.with_timer(&clock).bytes(silent()))
        .collect();
    let mut busy = limiter.with_timer(&clock).bytes(messages(4096));
    let mut moved = 0;
    for _ in 0..1000 * MANY {
        for reader in &mut idle {
            assert!(read(reader, 4096).is_pending());
        }
        while let Poll::Ready(read) = read(&mut busy, 4096) {
            let read = read.expect("it can be read");
            moved += read as u64;
            assert!(read > 0 && moved <= 1000 + millis(clock.now()), "{moved}");
        }
        clock.advance(Duration::from_millis(1));
    }
    // Each idle one may hold a chunk of 512.
    assert!(moved > 950 * MANY - 9 * 512, "{moved}");
}

/// Odd lengths, errors, and nothing to read.
#[test]
fn a_reader_moves_no_more_bytes_than_it_has_permits() {
    for (burst, few) in [(1, 512), (1, 1), (7, 3), (100, 512), (100, 1), (5000, 512)] {
        let (clock, limiter) = thousand(burst);
        let (mut random, moved) = (Random(burst), std::cell::Cell::new(0));
        let source = Source(|buffer: &mut ReadBuf<'_>| match random.below(5) {
            0 => Poll::Pending,
            1 => Poll::Ready(Err(io::Error::other("no"))),
            k => {
                let n = buffer.remaining().min(random.below(300 / k) as usize);
                buffer.put_slice(&[1; 300][..n]);
                moved.set(moved.get() + n as u64);
                Poll::Ready(Ok(()))
            }
        });
        let mut reader = limiter.with_timer(&clock).bytes(source).in_pieces_of(few);
        for step in 0..200 * MANY as usize {
            if read(&mut reader, step * 7 % 4096).is_pending() && clock.sleepers() > 0 {
                clock.set(clock.next_sleeper().expect("one sleeps"));
            }
            let most = burst + millis(clock.now());
            assert!(moved.get() <= most, "{} of {most}", moved.get());
        }
        assert!(moved.get() > burst);
    }
}
