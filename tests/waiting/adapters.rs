//! Readers and writers that share a limiter, and sinks that fail: nobody loses the rate, a wake-up or a permit.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tollgate::primitive::{AtomicU64, Ordering};
use tollgate::{Clock, Limiter, ManualClock, On, Quota, Tick, TokenBucket};

pub(crate) struct Count(pub(crate) AtomicU64);
impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) fn counting() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count(AtomicU64::new(0)));
    (count.clone(), Waker::from(count))
}

fn manual(quota: Quota) -> (ManualClock, Limiter<TokenBucket, ManualClock>) {
    let clock = ManualClock::new();
    let bucket = TokenBucket::new(quota).expect("a quota");
    (clock.clone(), Limiter::with_clock(bucket, clock))
}

/// Both directions, always ready.
struct Duplex;
impl AsyncRead for Duplex {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        b: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let n = b.remaining();
        b.put_slice(&vec![1; n]);
        Poll::Ready(Ok(()))
    }
}
impl AsyncWrite for Duplex {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        b: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Poll::Ready(Ok(b.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_reader_and_a_writer_of_one_split_stream_are_both_woken() {
    let (clock, gate) = manual(Quota::per_second(1000).burst(100));
    _ = gate.try_acquire_n(100);
    let both = gate.on(&clock).bytes(Duplex);
    let (mut reader, mut writer) = tokio::io::split(both);
    let (reads, read_waker) = counting();
    let (writes, write_waker) = counting();
    let mut space = [0; 100];
    let mut buffer = ReadBuf::new(&mut space);
    let mut at_read = Context::from_waker(&read_waker);
    let mut at_write = Context::from_waker(&write_waker);
    assert!(
        Pin::new(&mut reader)
            .poll_read(&mut at_read, &mut buffer)
            .is_pending()
    );
    assert!(
        Pin::new(&mut writer)
            .poll_write(&mut at_write, &[0; 100])
            .is_pending()
    );
    let mut read = false;
    let mut written = false;
    let (mut r, mut w) = (0, 0);
    // An executor: polls who is woken, and moves the clock on when nobody is.
    for _ in 0..100 {
        if reads.0.load(Ordering::SeqCst) > r && !read {
            r = reads.0.load(Ordering::SeqCst);
            read = Pin::new(&mut reader)
                .poll_read(&mut at_read, &mut buffer)
                .is_ready();
        } else if writes.0.load(Ordering::SeqCst) > w && !written {
            w = writes.0.load(Ordering::SeqCst);
            written = Pin::new(&mut writer)
                .poll_write(&mut at_write, &[0; 100])
                .is_ready();
        } else if let Some(next) = clock.next_sleeper() {
            clock.set(next);
        } else {
            clock.advance(Duration::from_secs(10));
        }
    }
    assert!(
        read && written,
        "read {read} written {written}; woken {r} {w}, at {:?}",
        clock.now()
    );
}

/// Gives so many bytes a read.
struct Short(usize);
impl AsyncRead for Short {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        b: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let n = b.remaining().min(self.0);
        b.put_slice(&vec![1; n]);
        Poll::Ready(Ok(()))
    }
}

/// Bytes that are moved in 100 s by so many readers of one gate of 1000 B/s, each reading messages of so many bytes.
fn moved(readers: usize, message: usize, burst: u64) -> usize {
    let (clock, gate) = manual(Quota::per_second(1000).burst(burst));
    _ = gate.try_acquire_n(burst);
    let mut all: Vec<_> = (0..readers)
        .map(|_| gate.on(&clock).bytes(Short(message)))
        .collect();
    let mut context = Context::from_waker(Waker::noop());
    let mut space = [0; 4096];
    let mut sum = 0;
    while clock.now() < Tick::from_nanos(100_000_000_000) {
        let mut progress = false;
        for reader in &mut all {
            let mut buffer = ReadBuf::new(&mut space);
            if Pin::new(reader)
                .poll_read(&mut context, &mut buffer)
                .is_ready()
            {
                sum += buffer.filled().len();
                progress = true;
            }
        }
        if !progress {
            clock.set(clock.next_sleeper().expect("all wait"));
        }
    }
    sum
}

#[test]
fn readers_of_short_messages_together_have_the_rate() {
    for (readers, message, burst) in [
        (1, 10, 1000),
        (2, 10, 1000),
        (8, 10, 1000),
        (8, 10, 5000),
        (8, 100, 1000),
        (8, 512, 1000),
    ] {
        eprintln!(
            "{readers} readers, {message} bytes each, burst {burst}: {} of 100000",
            moved(readers, message, burst)
        );
    }
    assert!(moved(8, 10, 1000) > 90_000);
}

/// Has something to read each second time it is asked, once it was woken for it.
struct Late<'c> {
    clock: &'c ManualClock,
    from: Tick,
    sleep: Option<Pin<Box<tollgate::ManualSleep>>>,
}
impl AsyncRead for Late<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        b: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        use tollgate::Timer;
        if self.clock.now() < self.from {
            let left = self.from.saturating_since(self.clock.now());
            let mut sleep = Box::pin(self.clock.sleep(left));
            assert!(std::future::Future::poll(sleep.as_mut(), context).is_pending());
            self.sleep = Some(sleep);
            return Poll::Pending;
        }
        let n = b.remaining().min(10);
        b.put_slice(&vec![1; n]);
        Poll::Ready(Ok(()))
    }
}

/// Nine idle readers, polled when woken spuriously once a millisecond, and one busy one.
#[test]
fn who_has_nothing_to_read_takes_nothing_from_who_has() {
    let (clock, gate) = manual(Quota::per_second(1000).burst(1000));
    _ = gate.try_acquire_n(1000);
    let mut idle: Vec<_> = (0..9)
        .map(|_| {
            let inner = Late {
                clock: &clock,
                from: Tick::MAX,
                sleep: None,
            };
            gate.on(&clock).bytes(inner)
        })
        .collect();
    let mut busy = gate.on(&clock).bytes(Short(4096));
    let mut context = Context::from_waker(Waker::noop());
    let mut space = [0; 4096];
    let mut sum = 0;
    for _ in 0..100_000 {
        for reader in &mut idle {
            let mut buffer = ReadBuf::new(&mut space);
            assert!(
                Pin::new(reader)
                    .poll_read(&mut context, &mut buffer)
                    .is_pending()
            );
        }
        loop {
            let mut buffer = ReadBuf::new(&mut space);
            if Pin::new(&mut busy)
                .poll_read(&mut context, &mut buffer)
                .is_pending()
            {
                break;
            }
            sum += buffer.filled().len();
        }
        clock.advance(Duration::from_millis(1));
    }
    eprintln!("busy got {sum} of 100000 while nine had nothing to read");
    assert!(sum > 90_000);
}

/// The account closes: single reader, odd lengths, errors, pendings.
#[test]
fn one_reader_moves_what_it_takes() {
    struct Odd(u64, u64);
    impl AsyncRead for Odd {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            b: &mut ReadBuf<'_>,
        ) -> Poll<std::io::Result<()>> {
            self.0 = self
                .0
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            match (self.0 >> 33) % 5 {
                0 => Poll::Pending,
                1 => Poll::Ready(Err(std::io::Error::other("no"))),
                k => {
                    let n = b
                        .remaining()
                        .min((self.0 >> 40) as usize % 300 / k as usize);
                    self.1 += n as u64;
                    b.put_slice(&vec![1; n]);
                    Poll::Ready(Ok(()))
                }
            }
        }
    }
    for (burst, few) in [(1, 512), (1, 1), (7, 3), (100, 512), (100, 1), (5000, 512)] {
        let (clock, gate) = manual(Quota::per_second(1000).burst(burst));
        let mut reader = gate.on(&clock).bytes(Odd(burst, 0)).in_pieces_of(few);
        let mut context = Context::from_waker(Waker::noop());
        let mut space = [0; 4096];
        let mut pending = 0;
        for step in 0..20_000u64 {
            let mut buffer = ReadBuf::new(&mut space[..(step as usize * 7) % 4096]);
            let poll = Pin::new(&mut reader).poll_read(&mut context, &mut buffer);
            if poll.is_pending() && clock.sleepers() > 0 {
                pending += 1;
                clock.set(clock.next_sleeper().unwrap());
            }
            let most = burst + clock.now().as_nanos() / 1_000_000;
            assert!(reader.inner().1 <= most, "{} of {most}", reader.inner().1);
        }
        eprintln!(
            "burst {burst} few {few}: moved {} in {:?}, waited {pending}",
            reader.inner().1,
            clock.now()
        );
    }
}

#[test]
fn a_sink_that_is_closed_or_failed_holds_no_permit() {
    use futures::Sink;
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
    let (clock, gate) = manual(Quota::per_second(10).burst(3));
    let mut context = Context::from_waker(Waker::noop());
    let mut sink = pin!(gate.on(&clock).sink(Fails(0)));
    assert_eq!(sink.as_mut().poll_ready(&mut context), Poll::Ready(Err(())));
    let after_failure = gate.available();
    assert_eq!(sink.as_mut().poll_close(&mut context), Poll::Ready(Ok(())));
    let after_close = gate.available();
    assert_eq!((after_failure, after_close), (3, 3));
}

#[test]
fn a_sink_never_sends_without_a_permit() {
    use futures::Sink;
    let (clock, gate) = manual(Quota::per_second(10).burst(3));
    let mut sink = pin!(gate.on(&clock).sink(futures::sink::drain::<u8>()));
    for _ in 0..100 {
        sink.as_mut().start_send(1).unwrap();
    }
    assert!(
        gate.try_acquire().is_err(),
        "100 sent, {} left",
        gate.available()
    );
}

#[test]
fn a_stream_whose_limiter_was_stuck_leaves_no_sleeper() {
    use futures::Stream;
    let (clock, gate) = manual(Quota::per_second(10).burst(1));
    gate.charge(u64::MAX);
    let mut items = Box::pin(On::new(&gate, &clock).stream(futures::stream::iter(["a"])));
    let mut context = Context::from_waker(Waker::noop());
    assert!(items.as_mut().poll_next(&mut context).is_pending());
    gate.reset();
    assert!(items.as_mut().poll_next(&mut context).is_ready());
    assert_eq!(clock.sleepers(), 0);
}
