//! What is restored from a snapshot stands as it stood, for each algorithm: no key can get more than its bound over the
//! time before and after; a ban ends when it would have ended; and whatever is damaged or made up, nothing is changed
//! and nothing panics.

mod bound;
mod carried;
mod damage;
mod elsewhere;
mod files;
mod forged;
mod round_trip;
mod threads;

use std::time::Duration;

use tollgate::{
    AnyAlgorithm, Keyed, ManualClock, Quota, Rebase, Requota, Settings, Tick, TokenBucket,
};

/// Every kind of algorithm, small ones and large ones.
fn all() -> Vec<AnyAlgorithm> {
    let texts = [
        "token-bucket 10/s",
        "token-bucket 13/s burst 40",
        "gcra 10/s burst 3",
        "gcra 1/10ms tolerance 25ms",
        "leaky-meter 10/s burst 20",
        "leaky-queue 7/min burst 5 free 2",
        "leaky-meter 10/s burst 35",
        "fixed-window 10/s",
        "fixed-window 100/min offset 7s",
        "fixed-window 5/s first-hit",
        "sliding-window 10/s",
        "sliding-window 50/min origin 9s rounding down",
        "intervals 10/s burst 20",
        "intervals 10/s burst 20 initial 4",
        "intervals 10/s burst 25 greedy",
    ];
    texts.map(|text| text.parse().expect(text)).into()
}

const SECOND: Duration = Duration::from_secs(1);

fn ticks(seconds: f64) -> Tick {
    Tick::ZERO.saturating_add(Duration::from_secs_f64(seconds))
}

fn table<A: Requota>(algorithm: A, at: Tick) -> Keyed<A, ManualClock> {
    Keyed::with_clock(algorithm, 1000, ManualClock::at(at)).expect("small")
}

fn bucket(text: &str) -> TokenBucket {
    TokenBucket::new(text.parse::<Quota>().expect(text)).expect(text)
}

fn written<A: Requota + Settings>(gate: &Keyed<A, ManualClock>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let keys = gate.snapshot(&mut bytes).expect("nothing fails");
    assert!(keys <= gate.len() as u64);
    bytes
}

/// Another table, on a clock that stands there, with what is in this one, where so much time has passed between.
fn restarted<A: Requota + Rebase + Settings>(
    gate: &Keyed<A, ManualClock>,
    algorithm: A,
    to: Tick,
    elapsed: Duration,
) -> Keyed<A, ManualClock> {
    let mut next = table(algorithm, to);
    let restored = next
        .restore_after(&mut written(gate).as_slice(), elapsed)
        .expect("whole");
    assert_eq!(
        (restored.keys, restored.no_room, restored.elapsed),
        (next.len() as u64, 0, elapsed)
    );
    next
}

/// splitmix64: a repeatable stream.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
