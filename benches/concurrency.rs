//! Measures entering and leaving a [`Concurrency`], beside two exchanges of a private word and
//! tokio's semaphore. All take turns in one run, so that a disturbance affects them alike.
//!
//!     cargo bench --bench concurrency [-- --strict]
//!
//! The result is the median of the rounds' ratios. With `--strict` a missed target is a failure.
//! Use a quiet machine.

#![allow(clippy::disallowed_types, reason = "no model runs a bench")]

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use tokio::sync::Semaphore;
use tollgate::Concurrency;

const TURNS: u32 = 100_000;

/// Aligned to two cache lines, so that contestants neither share a line nor straddle two.
#[repr(align(128))]
struct Aligned<T>(T);

/// The least possible cost: one exchange of the word to enter, and one to leave.
fn exchange_twice(word: &AtomicU64) -> bool {
    // ORDERING: Relaxed. The word publishes nothing; the bench only exchanges it.
    let entered = word.compare_exchange(0, 1, Relaxed, Relaxed).is_ok();
    black_box(word);
    entered & word.compare_exchange(1, 0, Relaxed, Relaxed).is_ok()
}

/// Returns the nanoseconds of a turn. The contestant's address is hidden in each turn, so that no
/// state stays in registers.
#[inline(never)]
fn time<T>(contestant: &T, turn: impl Fn(&T) -> bool) -> f64 {
    let start = Instant::now();
    let mut entered = 0;
    for _ in 0..TURNS {
        entered += u32::from(turn(black_box(contestant)));
    }
    let took = start.elapsed();
    assert_eq!(entered, TURNS, "a turn did not enter");
    took.as_nanos() as f64 / f64::from(TURNS)
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

const NAMES: [&str; 6] = [
    "two exchanges",
    "Concurrency::try_enter and leave",
    "Concurrency::enter().wait() and leave",
    "Concurrency::try_enter_n(3) and leave",
    "tokio Semaphore::try_acquire and release",
    "a denied try_enter",
];

fn main() -> ExitCode {
    let word = Aligned(AtomicU64::new(0));
    let limiter = Aligned(Concurrency::new(100).expect("a limit"));
    let full = Aligned(Concurrency::new(1).expect("a limit"));
    let _held = full.0.try_enter();
    let semaphore = Aligned(Semaphore::new(100));
    let round = || {
        [
            time(&word.0, exchange_twice),
            time(&limiter.0, |limiter| limiter.try_enter().is_ok()),
            time(&limiter.0, |limiter| limiter.enter().wait().is_ok()),
            time(&limiter.0, |limiter| limiter.try_enter_n(3).is_ok()),
            time(&semaphore.0, |semaphore| semaphore.try_acquire().is_ok()),
            time(&full.0, |full| full.try_enter().is_err()),
        ]
    };
    round();
    let has = |wanted| std::env::args().any(|argument| argument == wanted);
    // `cargo test` only checks that it runs.
    let rounds = if has("--bench") { 60 } else { 1 };
    let rounds: Vec<_> = (0..rounds).map(|_| round()).collect();
    for (name, place) in NAMES.iter().zip(0..) {
        let ns = middle(rounds.iter().map(|round| round[place]).collect());
        println!("{name:44} {ns:7.2} ns");
    }
    let ratio = |above: usize, below: usize| {
        middle(
            rounds
                .iter()
                .map(|round| round[above] / round[below])
                .collect(),
        )
    };
    let mut missed = false;
    for (what, ratio, most) in [
        (
            "entering and leaving, relative to two exchanges",
            ratio(1, 0),
            1.5,
        ),
        (
            "entering by wait and leaving, relative to two exchanges",
            ratio(2, 0),
            1.5,
        ),
        (
            "entering and leaving, relative to tokio's semaphore",
            ratio(1, 4),
            1.0,
        ),
    ] {
        let met = ratio <= most;
        missed |= !met;
        let verdict = if met { "met" } else { "MISSED" };
        println!("{what:52} {ratio:5.2}   <= {most:<4} {verdict}");
    }
    ExitCode::from(u8::from(missed && has("--strict")))
}
