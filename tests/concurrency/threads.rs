//! From many threads, with weights, panics and a limit that changes: never more inside than allowed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tollgate::Concurrency;
use tollgate::primitive::{AtomicU64, Ordering::SeqCst};

use super::gate;
use super::random::Random;

const TURNS: u64 = if cfg!(debug_assertions) {
    1_500
} else {
    20_000
};

/// How much is inside, counted by those who are: after they entered, and before they leave.
struct Room<'a> {
    gate: &'a Concurrency,
    counted: AtomicU64,
    entered: AtomicU64,
    most: u64,
}

impl Room<'_> {
    fn be_inside(&self, n: u64, random: &mut Random) {
        self.entered.fetch_add(n, SeqCst);
        let inside = self.counted.fetch_add(n, SeqCst) + n;
        assert!(inside <= self.most, "{inside} inside, of {}", self.most);
        if random.one_in(4) {
            thread::yield_now();
        }
        self.counted.fetch_sub(n, SeqCst);
        // Somebody goes out through the window.
        if random.one_in(16) {
            std::panic::resume_unwind(Box::new("out"));
        }
    }

    fn turn(&self, random: &mut Random) {
        let n = random.below(4);
        let gate = self.gate;
        let entered = match random.below(5) {
            0 => gate.try_enter_n(n),
            1 => gate.try_enter_ahead(n),
            2 => gate
                .enter_n(n)
                .wait_timeout(Duration::from_micros(random.below(50))),
            _ => gate.enter_n(n).wait(),
        };
        let Ok(guard) = entered else { return };
        assert_eq!(guard.n(), n);
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let guard = guard;
            self.be_inside(guard.n(), random);
        }));
    }
}

fn storm(threads: u64, limits: &[u64]) {
    let (first, most) = (limits[0], *limits.iter().max().expect("a limit"));
    let gate = gate(first);
    let room = Room {
        gate: &gate,
        counted: AtomicU64::new(0),
        entered: AtomicU64::new(0),
        most,
    };
    let start = Barrier::new(threads as usize);
    thread::scope(|scope| {
        for seed in 0..threads {
            let (room, start) = (&room, &start);
            scope.spawn(move || {
                let mut random = Random(seed);
                start.wait();
                for turn in 0..TURNS / threads {
                    room.turn(&mut random);
                    if limits.len() > 1 && turn % 8 == seed % 8 {
                        let limit = limits[random.below(limits.len() as u64) as usize];
                        room.gate.set_limit(limit).expect("a limit");
                    }
                }
            });
        }
    });
    assert_eq!((gate.inside(), gate.waiting()), (0, 0));
    assert!(gate.peak() <= most);
    assert!(room.entered.load(SeqCst) > 0);
    let limit = gate.limit();
    let all: Vec<_> = (0..limit)
        .map(|_| gate.try_enter().expect("room"))
        .collect();
    assert!(gate.try_enter().is_err());
    drop(all);
}

#[test]
fn never_more_than_the_limit() {
    for threads in [2, 3, 8, 16] {
        storm(threads, &[3]);
        storm(threads, &[5]);
    }
}

#[test]
fn never_more_than_the_largest_limit_that_was_set() {
    for threads in [2, 3, 8, 16] {
        storm(threads, &[3, 4, 7]);
    }
}

/// What one of them writes while it is alone, the next one reads.
#[test]
fn a_limit_of_one_is_a_lock() {
    let (gate, sum) = (gate(1), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..TURNS / 4 {
                    let _guard = gate.enter().wait().expect("a place");
                    // Not one exchange: two at once would lose one.
                    let seen = sum.load(SeqCst);
                    sum.store(seen + 1, SeqCst);
                }
            });
        }
    });
    assert_eq!(sum.load(SeqCst), TURNS / 4 * 4);
}
