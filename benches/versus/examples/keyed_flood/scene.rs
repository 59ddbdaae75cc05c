//! A table, its spent keys, and the clock of its limits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tollgate::keyed::Overflow;
use tollgate::{Keyed, Quota, Tick, TokenBucket};
use tollgate_versus::keys::key;

/// The number of keys that have spent their burst.
pub(crate) const SPENT: u64 = 100;
pub(crate) const BURST: u64 = 100;
/// The time from one permit to the next: 100 a minute.
const INTERVAL: Duration = Duration::from_millis(600);
/// A table has 1.49 slots for each key of its capacity.
pub(crate) const CAPACITY: u64 = 1_000_000 * 100 / 149;
/// How many other requests come between two passes over the spent keys.
pub(crate) const BETWEEN: u64 = 1000;

pub(crate) const START: Tick = Tick::from_nanos(1_000_000_000);

/// Returns the limit of each key.
pub(crate) fn bucket() -> TokenBucket {
    TokenBucket::new(Quota::per_minute(100).burst(BURST)).expect("a quota that fits")
}

/// Returns how many permits were refilled for a key that spent its burst at [`START`].
pub(crate) fn refilled(now: Tick) -> u64 {
    (now.saturating_since(START).as_nanos() / INTERVAL.as_nanos()) as u64
}

pub(crate) struct Scene {
    pub(crate) table: Keyed<TokenBucket>,
    time: Time,
    /// The permits granted to each spent key.
    granted: [u64; SPENT as usize],
    /// The durations of the latest passes over the spent keys, in nanoseconds.
    passes: Vec<u32>,
}

/// How many durations are kept.
const KEPT: usize = 1 << 10;

impl Scene {
    /// Returns a table filled to its capacity. Each request for a key other than the spent ones
    /// advances the time by `step`.
    pub(crate) fn full(overflow: Overflow, step: Duration) -> Self {
        let table = Keyed::new(bucket(), CAPACITY as usize);
        let table = table.expect("a valid capacity");
        let mut scene = Self {
            table: table.with_overflow(overflow),
            time: Time::new(step),
            granted: [0; SPENT as usize],
            // Writes every element, so that no page is touched for the first time later.
            passes: vec![1; KEPT],
        };
        scene.spend();
        for number in SPENT..CAPACITY {
            scene.asks(key(number));
        }
        scene
    }

    /// Makes a request for a key other than the spent ones.
    fn asks(&self, key: u64) {
        let _ = self.table.key(&key).at(self.time.step()).try_acquire();
    }

    /// Takes all permits of the spent keys.
    fn spend(&mut self) {
        let now = self.time.now();
        for (granted, number) in self.granted.iter_mut().zip(0..) {
            while self.table.key(&key(number)).at(now).try_acquire().is_ok() {
                *granted += 1;
            }
        }
    }

    /// Makes passes over the spent keys, with `others` other requests before each. Returns the
    /// median nanoseconds of a decision on a spent key.
    pub(crate) fn among(
        &mut self,
        passes: u64,
        others: u64,
        mut other: impl FnMut() -> u64,
    ) -> f64 {
        for pass in 0..passes {
            for _ in 0..others {
                self.asks(other());
            }
            self.pass(pass);
        }
        self.middle(passes)
    }

    /// Makes passes while another thread makes this many requests.
    pub(crate) fn beside(&mut self, others: u64, mut other: impl FnMut() -> u64 + Send) -> f64 {
        let (table, time) = (&self.table, &self.time);
        let (granted, passes) = (&mut self.granted, &mut self.passes);
        let made = thread::scope(|scope| {
            let asking = scope.spawn(move || {
                for _ in 0..others {
                    let _ = table.key(&other()).at(time.step()).try_acquire();
                }
            });
            let mut made = 0;
            while !asking.is_finished() {
                pass(table, time.now(), granted, place(passes, made));
                made += 1;
            }
            made
        });
        self.middle(made)
    }

    fn pass(&mut self, number: u64) {
        let kept = place(&mut self.passes, number);
        pass(&self.table, self.time.now(), &mut self.granted, kept);
    }

    fn middle(&mut self, made: u64) -> f64 {
        let made = self.passes.len().min(made as usize);
        let made = self.passes.get_mut(..made).unwrap_or_default();
        made.sort_unstable();
        let middle = made.get(made.len() / 2).copied();
        middle.map_or(f64::NAN, f64::from) / SPENT as f64
    }

    /// Takes all remaining permits of the spent keys. Returns the fewest and the most that a key
    /// got in total, and the number due to each.
    pub(crate) fn drained(&mut self) -> (u64, u64, u64) {
        self.spend();
        let (least, most) = (self.granted.iter().min(), self.granted.iter().max());
        (
            least.copied().unwrap_or(0),
            most.copied().unwrap_or(u64::MAX),
            BURST + refilled(self.time.now()),
        )
    }
}

fn place(passes: &mut [u32], number: u64) -> Option<&mut u32> {
    passes.get_mut(number as usize % KEPT)
}

/// Makes one request for each spent key.
fn pass(
    table: &Keyed<TokenBucket>,
    now: Tick,
    granted: &mut [u64; SPENT as usize],
    kept: Option<&mut u32>,
) {
    let start = Instant::now();
    for (granted, number) in granted.iter_mut().zip(0..) {
        *granted += u64::from(table.key(&key(number)).at(now).try_acquire().is_ok());
    }
    if let Some(kept) = kept {
        *kept = start.elapsed().as_nanos() as u32;
    }
}

/// A clock that advances by a fixed step.
struct Time {
    now_ns: AtomicU64,
    step_ns: u64,
}

// ORDERING: Relaxed. The time publishes no other memory.
impl Time {
    const fn new(step: Duration) -> Self {
        Self {
            now_ns: AtomicU64::new(START.as_nanos()),
            step_ns: step.as_nanos() as u64,
        }
    }

    fn now(&self) -> Tick {
        Tick::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }

    fn step(&self) -> Tick {
        let before = self.now_ns.fetch_add(self.step_ns, Ordering::Relaxed);
        Tick::from_nanos(before + self.step_ns)
    }
}
