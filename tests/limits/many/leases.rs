//! Leases beside their rule: a limiter with so much less, a number of permits that each holds, and what is left
//! of the total. And beside one word with the whole limit, which is told of each permit when it is used.

use std::fmt::Debug;
use std::time::Duration;

use tollgate::{AnyAlgorithm, Denied, Lease, Leases, Lend, ManualClock, Tick};

use crate::many::OPERATIONS;
use crate::many::lent::{Every, Model};
use crate::support::random::Random;
use crate::support::reference::FIFTY_YEARS;
use crate::support::seen::Seen;

struct Run<'l, A: Every> {
    gate: &'l Leases<A, ManualClock>,
    model: Model<A>,
    leases: Vec<Lease<&'l Leases<A, ManualClock>>>,
    random: Random,
    now: Tick,
    /// Whether what is used is compared with the whole.
    is_bounded: bool,
    seen: Seen,
    label: String,
}

impl<A: Every> Run<'_, A> {
    fn operate(&mut self, moments: u64) {
        for _ in 0..moments {
            self.now = self.moment();
            self.gate.limiter().clock().set(self.now);
            for _ in 0..1 + self.random.below(4) {
                self.any_verb();
                self.look();
            }
        }
        self.leases.clear();
        self.right("lent in the end", self.gate.lent(), 0);
    }

    /// The same, when something is there or a moment beside it, or a later one; an earlier one where that does
    /// not matter.
    fn moment(&mut self) -> Tick {
        let still = self.now.as_nanos();
        let random = &mut self.random;
        let period = self.model.whole.0.quota().period().as_nanos() as u64;
        let target = match random.below(12) {
            0..=3 => still,
            4 => still.saturating_add(1),
            5..=7 => {
                let n = 1 + random.upto(self.model.limit() - 1);
                let wait = self.gate.limiter().time_until(n).unwrap_or(Duration::ZERO);
                self.now
                    .saturating_add(wait)
                    .as_nanos()
                    .saturating_add(random.below(2))
            }
            8 => still.saturating_add(random.upto(period.saturating_mul(2))),
            9 if !self.is_bounded => still.saturating_sub(random.upto(period)),
            10 if !self.is_bounded && random.one_in(100) => return Tick::MAX,
            _ => still.saturating_add(random.upto(period / 4)),
        };
        Tick::from_nanos(match target > FIFTY_YEARS && !self.is_bounded {
            true => random.upto(FIFTY_YEARS),
            false => target,
        })
    }

    #[track_caller]
    fn right<T: PartialEq + Debug>(&self, what: &str, got: T, right: T) {
        assert!(
            got == right,
            "{}: {what} is {got:?}, but {right:?} is right, at {:?} after {} operations: {:?}",
            self.label,
            self.now,
            self.seen.count("operation"),
            self.model.leases,
        );
    }

    fn done(&mut self, verb: &'static str) {
        self.seen.note(verb);
        self.seen.note("operation");
    }

    /// What each lease says of itself, and what is left of the rest.
    fn look(&self) {
        self.right("lent", self.gate.lent(), self.model.lent());
        let view = self.model.limiter.at(self.now);
        let there = self.gate.limiter().available();
        self.right("available", there, view.available());
        for (lease, right) in self.leases.iter().zip(&self.model.leases) {
            self.right(
                "a lease",
                (lease.size(), lease.held()),
                (right.size, right.held),
            );
        }
        assert!(self.model.held() <= self.model.total);
    }

    fn any_verb(&mut self) {
        let of = match self.leases.len() as u64 {
            0 => return self.lease(),
            leases => self.random.below(leases) as usize,
        };
        match self.random.below(24) {
            0..=14 => self.acquire(of),
            15 | 16 => self.directly(),
            17 | 18 => self.lease(),
            19 | 20 => self.give_back(of),
            _ => self.end(of),
        }
    }

    fn lease(&mut self) {
        let asked = match self.random.below(8) {
            0 => 0,
            1 => u64::MAX,
            2 => self.model.total,
            _ => 1 + self.random.upto(self.model.total - 1),
        };
        let right = self.model.lease(asked);
        self.leases.push(self.gate.lease(asked));
        self.done("lease");
        self.seen.note(match right.size {
            0 if asked > 0 => "nothing left to lend",
            size if size < asked => "a smaller lease",
            _ => "a lease as asked",
        });
    }

    fn any_count(&mut self, of: usize) -> u64 {
        let (limit, lease) = (self.model.limit(), self.model.leases[of]);
        let most = limit.saturating_add(lease.size);
        match self.random.below(16) {
            0 => 0,
            1 => lease.held,
            2 => lease.held + 1,
            3 => lease.held + self.gate.limiter().available(),
            4 => lease.held + self.gate.limiter().available() + 1,
            5 => most,
            6 => most + 1,
            7 if self.random.one_in(8) => u64::MAX,
            8 | 9 => 1 + self.random.upto(most - 1),
            _ => 1,
        }
    }

    fn acquire(&mut self, of: usize) {
        let n = self.any_count(of);
        let before = self.model.leases[of].held;
        let right = self.model.acquire(of, n, self.now);
        let got = match (n, self.random.below(2)) {
            (1, 0) => self.leases[of].try_acquire(),
            _ => self.leases[of].try_acquire_n(n),
        };
        self.done("acquire");
        let denied = match got {
            Ok(()) => {
                self.right("the answer", got, right);
                self.seen.note(match n {
                    0 => "granted 0",
                    n if n <= before => "held",
                    _ if self.model.leases[of].held > 0 => "drawn",
                    _ => "taken from the limiter",
                });
                self.used(n);
                return;
            }
            Err(denied) => denied,
        };
        if n > self.model.limit() && n <= self.model.limit() + self.leases[of].size() {
            // It is there when the lease is full and the limiter has the rest.
            let never = matches!(denied, Denied::Never { .. });
            self.right("a denial", (right.is_err(), never), (true, false));
            self.seen.note("later, with what is held");
            return;
        }
        self.right("the answer", got, right);
        self.seen.note(match denied {
            Denied::Never { .. } => "never",
            Denied::Later { .. } if n == 0 => "in debt",
            Denied::Later { .. } => "later",
            _ => "stuck",
        });
        if let Some(retry_after) = denied.retry_after() {
            self.at_its_time(of, n, retry_after);
        }
    }

    /// It is denied a nanosecond before, and then it is there.
    fn at_its_time(&mut self, of: usize, n: u64, retry_after: Duration) {
        let due = self.now.saturating_add(retry_after);
        let nanosecond = Duration::from_nanos(1);
        for (tick, is_there) in [(due.saturating_sub(nanosecond), false), (due, true)] {
            self.gate.limiter().clock().set(tick);
            self.now = tick;
            let right = self.model.acquire(of, n, tick);
            let got = self.leases[of].try_acquire_n(n);
            self.right("the answer then", got, right);
            self.right("whether it is there then", got.is_ok(), is_there);
            self.done("acquire at its time");
        }
        self.used(n);
    }

    fn used(&mut self, n: u64) {
        if self.is_bounded && n > 0 {
            let fits = self.model.uses(n, self.now);
            self.right("whether the whole allows it", fits, true);
            self.seen.note("used");
        }
    }

    /// Without a lease.
    fn directly(&mut self) {
        let n = 1 + self.random.upto(self.model.limit());
        let right = self.model.limiter.at(self.now).try_acquire_n(n);
        let got = self.gate.try_acquire_n(n);
        self.done("without a lease");
        self.right("the answer", got, right);
        if got.is_ok() {
            self.used(n);
        }
        if !self.is_bounded && self.random.one_in(4) {
            let n = self.random.upto(self.model.limit());
            let right = self.model.limiter.at(self.now).charge(n);
            let got = self.gate.limiter().charge(n);
            self.right("the charge", got, right);
        }
    }

    fn give_back(&mut self, of: usize) {
        let right = self.model.give_back(of, self.now);
        let back = self.leases[of].give_back();
        self.done("give_back");
        self.right("given back", back, right);
        self.seen.note(if back == 0 {
            "none came back"
        } else {
            "came back"
        });
    }

    fn end(&mut self, of: usize) {
        self.model.give_back(of, self.now);
        self.model.leases.swap_remove(of);
        drop(self.leases.swap_remove(of));
        self.done("drop");
    }
}

/// All that must have been met.
const MUST_SEE: [&str; 22] = [
    "acquire",
    "acquire at its time",
    "without a lease",
    "lease",
    "give_back",
    "drop",
    "nothing left to lend",
    "a smaller lease",
    "a lease as asked",
    "granted 0",
    "held",
    "drawn",
    "taken from the limiter",
    "later",
    "later, with what is held",
    "in debt",
    "never",
    "stuck",
    "none came back",
    "came back",
    "used",
    "operation",
];

/// Buckets, windows and intervals, exact ones, whose periods do not begin with a permit.
const BOUNDED: [&str; 10] = [
    "token-bucket 10/s burst 30",
    "token-bucket 1000/s burst 1000 initial 7",
    "gcra 1/10ms tolerance 255ms",
    "leaky-meter 7/min burst 20",
    "fixed-window 100/s",
    "fixed-window 7/min offset 3s",
    "sliding-window 100/s",
    "sliding-window 64/min offset 3s",
    "intervals 10/s burst 25",
    "intervals 7/s burst 100",
];

/// Those that round.
const OTHERS: [&str; 4] = [
    "token-bucket 97/s burst 64",
    "gcra 9999999999/s burst 100",
    "sliding-window 40/s rounding down",
    "token-bucket 1/365d burst 40",
];

#[test]
fn leases_are_what_their_rule_says_and_the_bound_is_that_of_the_whole() {
    let (mut random, mut seen) = (Random(0x0070_11a7_e701), Seen::default());
    let bounded = BOUNDED.map(|text| (text, true));
    let both = BOUNDED.into_iter().chain(OTHERS).map(|text| (text, false));
    let cases: Vec<_> = bounded.into_iter().chain(both).collect();
    while seen.count("operation") < OPERATIONS {
        for (text, is_bounded) in &cases {
            let algorithm: AnyAlgorithm = text.parse().expect(text);
            let total = 1 + random.upto(algorithm.most_lent() - 1);
            let start = Tick::from_nanos(random.upto(FIFTY_YEARS / 2));
            let clock = ManualClock::at(start);
            let gate = Leases::with_clock(algorithm, total, clock).expect("it can be lent");
            let seed = random.next();
            let mut run = Run {
                gate: &gate,
                model: Model::new(algorithm, total, start),
                leases: Vec::new(),
                random: Random(seed),
                now: start,
                is_bounded: *is_bounded,
                seen: Seen::default(),
                label: format!("seed {seed:#x}, {total} of {text}"),
            };
            run.operate(200);
            seen.add(&run.seen);
        }
    }
    seen.check(OPERATIONS, &[&MUST_SEE]);
}

/// On an `Arc`, as on a reference.
#[test]
fn a_lease_that_is_owned_is_a_lease() {
    let bucket: AnyAlgorithm = "token-bucket 10/s burst 30".parse().expect("a bucket");
    let gate = Leases::with_clock(bucket, 20, ManualClock::new()).expect("leases");
    let gate = std::sync::Arc::new(gate);
    let (mut owned, mut lent) = (gate.lease_owned(15), gate.lease(15));
    assert_eq!((owned.size(), lent.size()), (15, 5));
    // 30 less the total of 20 are there, of which the first draws all.
    assert_eq!(owned.try_acquire(), Ok(()));
    let later = Denied::later(1, Duration::from_millis(100));
    assert_eq!(lent.try_acquire(), Err(later));
    assert_eq!((owned.held(), lent.held()), (9, 0));
    assert_eq!(owned.give_back(), 9);
    assert_eq!(lent.try_acquire(), Ok(()));
    assert_eq!((lent.held(), gate.limiter().available()), (4, 4));
}
