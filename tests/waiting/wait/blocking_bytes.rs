//! Blocking readers and writers at a rate: in any interval at most the limit and one chunk, no byte
//! is lost, and unused permits come back.

use std::io::{self, Read, Write};

use tollgate::wait::BlockingBytes;

use crate::support::*;

/// Moves as many bytes as a closure says, and records when.
struct Pipe<F> {
    bytes: Vec<u8>,
    at_once: F,
}

impl<F: FnMut(usize) -> io::Result<usize>> Write for Pipe<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = (self.at_once)(bytes.len())?;
        self.bytes.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn bytes_are_written_at_the_rate_and_none_is_lost() {
    for piece in [1, 10, 100, 1000] {
        let (clock, limiter) = bucket(Quota::per_second(1000).burst(200));
        let all: Vec<u8> = (0..5000_u32).map(|i| i as u8).collect();
        let (mut written, mut random) = (0, Random(7));
        let at_once = |most: usize| {
            let n = 1 + random.below(most as u64) as usize;
            written += n;
            let allowed = 200 + millis(clock.now());
            assert!(written as u64 <= allowed, "{written} of {allowed}");
            Ok(n)
        };
        let bytes = Vec::new();
        let pipe = Pipe { bytes, at_once };
        let mut writer = BlockingBytes::new(&limiter, pipe).in_pieces_of(piece);
        writer.write_all(&all).expect("it can be written");
        assert_eq!(writer.into_inner().bytes, all);
        // The rate is kept: the unused permits of a chunk are used later.
        let took = millis(clock.now());
        assert!(
            (4800..=4801).contains(&took),
            "{took} ms in pieces of {piece}"
        );
        assert_eq!(limiter.available() + all.len() as u64, 200 + took);
    }
}

#[test]
fn short_reads_return_the_unused_permits_of_each_chunk() {
    let (clock, limiter) = bucket(Quota::per_second(1000).burst(600));
    // Two bytes each time, and then the end.
    let mut left = 600;
    struct Source<F>(F);
    impl<F: FnMut() -> usize> Read for Source<F> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = (self.0)().min(buffer.len());
            buffer[..n].fill(1);
            Ok(n)
        }
    }
    let source = Source(|| {
        let n = left.min(2);
        left -= n;
        n
    });
    let mut all = Vec::new();
    let mut reader = BlockingBytes::new(&limiter, source);
    reader.read_to_end(&mut all).expect("it can be read");
    assert_eq!((all.len(), limiter.available()), (600, millis(clock.now())));
}

#[test]
fn an_error_returns_all_permits() {
    let (_, limiter) = bucket(Quota::per_second(1000).burst(600));
    let bytes = Vec::new();
    let at_once = |_| Err(io::Error::other("broken"));
    let mut writer = BlockingBytes::new(&limiter, Pipe { bytes, at_once });
    assert!(writer.write(b"abc").is_err());
    assert!(writer.write(b"").is_err(), "the writer decides on nothing");
    assert_eq!(limiter.available(), 600);
}

#[test]
fn a_limiter_that_can_never_grant_a_byte_is_an_error() {
    let (_, limiter) = bucket(Quota::per_second(1000).burst(600));
    limiter.charge(u64::MAX);
    let mut reader = BlockingBytes::new(&limiter, &b"abc"[..]);
    let error = reader.read(&mut [0; 8]).expect_err("it is stuck");
    assert!(error.to_string().contains("reset"), "{error}");
}
