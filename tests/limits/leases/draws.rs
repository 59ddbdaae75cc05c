//! Counts the draws of simulated threads on one clock: at a steady rate, in bursts, and after a
//! pause. The quota is 4 000 million permits a second, and each thread's share of the total is more
//! than it needs.

use tollgate::leases::Lease;

use crate::support::*;

type Tested = Leases<TokenBucket, ManualClock>;

/// The least that a lease draws, if its size allows.
const LEAST: u64 = 64;

/// A draw that lasts less than this makes the next one larger.
const LASTS_NS: u64 = 16_384;

const THREADS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Leases of simulated threads. Each thread takes a permit every `every` nanoseconds: together they
/// take what the quota allows, but no thread more than one in a nanosecond.
struct Simulated<'l> {
    limiter: &'l Tested,
    leases: Vec<Lease<&'l Tested>>,
    every: u64,
    now: u64,
    draws: u64,
    grants: u64,
}

fn limiter() -> Tested {
    let quota = Quota::per_second(4_000_000_000).burst(2_000_000_000);
    let bucket = TokenBucket::new(quota).expect("a bucket");
    Leases::with_clock(bucket, 1_000_000_000, ManualClock::new()).expect("leases")
}

impl<'l> Simulated<'l> {
    fn new(limiter: &'l Tested, threads: u64, size: u64) -> Self {
        Self {
            limiter,
            leases: (0..threads).map(|_| limiter.lease(size)).collect(),
            every: (threads / 4).max(1),
            now: 0,
            draws: 0,
            grants: 0,
        }
    }

    fn pass(&mut self, ns: u64) {
        self.now += ns;
        self.limiter.limiter().clock().set(tick(self.now));
    }

    /// Takes one permit and returns whether the lease drew for it.
    fn take(&mut self, id: usize) -> bool {
        let lease = &mut self.leases[id];
        let draws = lease.held() == 0;
        assert_eq!(lease.try_acquire(), Ok(()), "the quota allows it");
        assert!(lease.held() < lease.size());
        self.draws += u64::from(draws);
        self.grants += 1;
        draws
    }

    /// All threads take their permits for this long.
    fn steadily(&mut self, ns: u64) {
        for _ in 0..ns {
            for id in (self.now % self.every..self.leases.len() as u64).step_by(self.every as usize)
            {
                self.take(id as usize);
            }
            self.pass(1);
        }
    }

    /// One thread after another takes `permits` permits at its rate.
    fn in_bursts(&mut self, permits: u64) {
        for id in 0..self.leases.len() {
            for _ in 0..permits {
                self.take(id);
                self.pass(self.every);
            }
        }
    }

    /// Returns how many permits each thread would take while two draws last, or the least draw.
    fn most_held(&self) -> u64 {
        (2 * LASTS_NS / self.every).max(LEAST)
    }

    fn none_holds_more_than(&self, most: u64, threads: u64) {
        let held = self.leases.iter().map(Lease::held).max();
        assert!(held <= Some(most), "{held:?} of {most}, {threads} threads");
    }

    fn counted(&mut self) -> (u64, u64) {
        (
            std::mem::take(&mut self.draws),
            std::mem::take(&mut self.grants),
        )
    }
}

/// All threads together draw less than four million times a second, and each holds at most what it
/// uses in 33 microseconds.
#[test]
fn a_thread_at_a_steady_rate_draws_at_most_once_in_16_microseconds() {
    let ns = debug_or_release(100, 2_000) * 1_000;
    for threads in THREADS {
        let limiter = limiter();
        let mut all = Simulated::new(&limiter, threads, 1 << 20);
        all.steadily(50_000);
        all.none_holds_more_than(all.most_held(), threads);
        all.counted();
        all.steadily(ns);
        all.none_holds_more_than(all.most_held(), threads);
        let (draws, grants) = all.counted();
        println!(
            "{threads} threads, steady: {} draws a million",
            draws * 1_000_000 / grants
        );
        assert!(
            draws <= threads * (ns / LASTS_NS + 1),
            "{draws}, {threads} threads"
        );
        assert!(grants >= ns * threads.min(4) - threads);
    }
}

/// Each burst begins with the least draw, and each draw doubles: 64, 128, 256, 512 and 1024 are
/// more than two thousand permits.
#[test]
fn a_burst_of_a_thousand_permits_takes_at_most_five_draws() {
    for threads in THREADS {
        let limiter = limiter();
        let mut all = Simulated::new(&limiter, threads, 1 << 20);
        for _ in 0..debug_or_release(5, 50) {
            all.in_bursts(1_000);
            all.none_holds_more_than(1_024, threads);
            all.pass(1_000_000);
        }
        let (draws, grants) = all.counted();
        println!(
            "{threads} threads, bursts: {} draws a million",
            draws * 1_000_000 / grants
        );
        assert!(
            draws * 1_000 <= grants * 5,
            "{draws} of {grants}, {threads} threads"
        );
    }
}

/// After a pause, a lease uses what it holds and then draws as at first.
#[test]
fn a_lease_that_was_idle_draws_little() {
    for threads in THREADS {
        let limiter = limiter();
        let mut all = Simulated::new(&limiter, threads, 1 << 20);
        all.steadily(100_000);
        all.pass(20_000_000);
        for id in 0..threads as usize {
            while !all.take(id) {}
            assert_eq!(all.leases[id].held(), LEAST - 1, "{threads} threads");
        }
    }
}

/// A lease draws the `n`-th part of its last draw if that lasted `n` times as long as it should.
#[test]
fn a_slower_thread_draws_less() {
    let limiter = limiter();
    let mut all = Simulated::new(&limiter, 1, 1 << 20);
    all.steadily(100_000);
    let before = loop {
        if all.take(0) {
            break all.leases[0].held() + 1;
        }
    };
    while all.leases[0].held() > 0 {
        all.take(0);
    }
    all.pass(4 * LASTS_NS);
    assert!(all.take(0));
    assert_eq!(all.leases[0].held() + 1, before / 4);
    // A tick before the last draw is taken for the same tick.
    while all.leases[0].held() > 0 {
        all.take(0);
    }
    limiter.limiter().clock().set(tick(0));
    assert!(all.take(0));
    assert_eq!(all.leases[0].held() + 1, before / 4 * 2);
}

/// While the limiter is dry, threads return at once because they get little. That does not make
/// their draws larger when there is more.
#[test]
fn a_lease_that_got_less_than_it_asked_for_does_not_ask_for_more() {
    let limiter = limiter();
    let mut leases: Vec<_> = (0..16).map(|_| limiter.lease(1 << 20)).collect();
    let there = limiter.limiter().take_up_to(u64::MAX).n();
    assert_eq!(there, 1_000_000_000);
    let mut used = 0;
    for now in 0..300_000 {
        limiter.limiter().clock().set(tick(now));
        // All ask for 30 microseconds, and then one of them alone.
        let asks = if now < 30_000 { 16 } else { 1 };
        for lease in &mut leases[..asks] {
            used += u64::from(lease.try_acquire().is_ok());
            assert!(lease.held() <= 2 * LASTS_NS, "{} at {now}", lease.held());
        }
    }
    let held: u64 = leases.iter().map(Lease::held).sum();
    assert_eq!(used + held + limiter.limiter().available(), 4 * 299_999);
}

/// A lease draws neither more than its size nor, if it gives back, more than it needs.
#[test]
fn a_lease_of_64_always_draws_64_and_one_that_gives_back_begins_again() {
    let limiter = limiter();
    let mut all = Simulated::new(&limiter, 16, LEAST);
    all.steadily(10_000);
    let (draws, grants) = all.counted();
    assert!((grants / LEAST..=grants / LEAST + 16).contains(&draws));

    let mut lease = limiter.lease(1 << 20);
    for _ in 0..100 {
        assert_eq!(lease.try_acquire(), Ok(()));
        assert_eq!(lease.give_back(), LEAST - 1);
    }
}

/// Requests for several permits, and an empty one, draw as those for one do.
#[test]
fn requests_for_several_permits_draw_more_too() {
    let limiter = limiter();
    let mut lease = limiter.lease(10_000);
    assert_eq!((lease.try_acquire_n(1_000), lease.held()), (Ok(()), 0));
    for _ in 0..100 {
        assert_eq!((lease.try_acquire_n(0), lease.held()), (Ok(()), 0));
    }
    assert_eq!((lease.try_acquire_n(1_000), lease.held()), (Ok(()), 1_000));
    assert_eq!((lease.try_acquire_n(1_001), lease.held()), (Ok(()), 2_999));
    assert_eq!((lease.try_acquire_n(9_000), lease.held()), (Ok(()), 0));
    assert_eq!((lease.try_acquire_n(9_000), lease.held()), (Ok(()), 1_000));
    assert_eq!((lease.try_acquire_n(20_000), lease.held()), (Ok(()), 0));
}

/// A limiter that has less than the least draw gives what it has, and ten thousand leases share a
/// total that does not divide by their number.
#[test]
fn scarce_permits_and_many_leases_keep_the_total() {
    let bucket = TokenBucket::new(Quota::per_second(1).burst(100_003)).expect("a bucket");
    let limiter = Leases::with_clock(bucket, 100_000, ManualClock::new()).expect("leases");
    let mut leases: Vec<_> = (0..10_000).map(|_| limiter.lease(13)).collect();
    assert_eq!(limiter.lent(), 100_000);
    let sizes = |of: std::ops::Range<usize>| leases[of].iter().map(Lease::size).collect::<Vec<_>>();
    assert_eq!(sizes(7_691..7_694), [13, 4, 0]);
    // The limiter has three permits besides.
    let granted = leases
        .iter_mut()
        .filter_map(|lease| lease.try_acquire().ok());
    assert_eq!(granted.count(), 1);
    assert_eq!(leases[0].held(), 2);
    drop(leases);
    assert_eq!((limiter.lent(), limiter.limiter().available()), (0, 2));
}
