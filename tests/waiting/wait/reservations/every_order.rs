//! Every order of a few verbs on small buckets. After each verb the bound is checked over every
//! interval: permits at the ticks at which they are due, minus those that came back afterwards.

use std::mem;

use tollgate::algorithm::Reserve;

use crate::support::*;

/// The number of additional verbs in release builds. Five verbs were enough to find all wrong rules
/// for returns.
const MORE: u32 = if cfg!(debug_assertions) { 0 } else { 1 };

const INTERVAL_NS: u64 = 2;

/// A reservation that a caller holds.
struct Held {
    granted: Granted,
    /// The permits that are still used.
    goes: u64,
    is_live: bool,
}

/// All operations on one word.
struct Search<'a, A> {
    algorithm: &'a A,
    /// At most this many at once, and one more every `INTERVAL_NS`.
    burst: u64,
    /// The largest request.
    largest: u64,
    held: Vec<Held>,
    /// Permits that came back after they were due, with the tick.
    came_back: Vec<(Tick, u64)>,
    /// The history: the tick, the reservation that was cancelled if it was not a new one, the
    /// permits, and the word afterwards.
    done: Vec<(u64, Option<usize>, u64, u64)>,
    cancelled_in_line: u64,
}

impl<A: Reserve> Search<'_, A> {
    /// Checks every interval that begins and ends when a caller goes.
    fn check(&self) {
        let going = || self.held.iter().filter(|held| held.goes > 0);
        for (first, last) in going().flat_map(|first| going().map(move |last| (first, last))) {
            let (a, b) = (first.granted.due(), last.granted.due());
            if a > b {
                continue;
            }
            let inside = going().filter(|held| (a..=b).contains(&held.granted.due()));
            let goes: u64 = inside.map(|held| held.goes).sum();
            let back = self.came_back.iter().filter(|(at, _)| (a..=b).contains(at));
            let back: u64 = back.map(|(_, n)| n).sum();
            let length = b.as_nanos() - a.as_nanos();
            assert!(
                goes.saturating_sub(back) * INTERVAL_NS <= self.burst * INTERVAL_NS + length,
                "{goes} less {back} from {a:?} to {b:?} after {:?}",
                self.done
            );
        }
    }

    fn go_on(&mut self, word: u64, now: u64, steps: u32) {
        self.check();
        if steps == 0 {
            return;
        }
        for n in 1..=self.largest {
            self.reserve(n, word, now, steps - 1);
        }
        for which in 0..self.held.len() {
            for n in 1..=self.held[which].granted.n() {
                if self.held[which].is_live {
                    self.cancel(which, n, word, now, steps - 1);
                }
            }
        }
        for by in [1, INTERVAL_NS] {
            self.go_on(word, now + by, steps - 1);
        }
    }

    fn reserve(&mut self, n: u64, word: u64, now: u64, steps: u32) {
        let reserved = self.algorithm.reserve(word, tick(now), n, Tick::MAX);
        let (next, granted) = reserved.expect("it is due some time");
        assert!(granted.due() >= tick(now));
        self.done.push((now, None, n, next));
        let (goes, is_live) = (n, true);
        self.held.push(Held {
            granted,
            goes,
            is_live,
        });
        self.go_on(next, now, steps);
        self.held.pop();
        self.done.pop();
    }

    fn cancel(&mut self, which: usize, n: u64, word: u64, now: u64, steps: u32) {
        let (now_tick, held) = (tick(now), &mut self.held[which]);
        let (before, goes) = (held.granted.info(), held.goes);
        let (next, kept, back) = self.algorithm.cancel(word, now_tick, &held.granted, n);
        assert!(back <= n && next <= word && kept.due() <= before.due());
        assert_eq!(kept.n(), before.n() - n);
        self.done.push((now, Some(which), n, next));
        let credits = self.came_back.len();
        held.is_live = false;
        let mut whole = None;
        if before.due() > now_tick {
            self.cancelled_in_line += 1;
            held.goes -= n;
            whole = Some(mem::replace(&mut held.granted, kept));
        } else {
            self.came_back.push((now_tick, back));
        }
        self.go_on(next, now, steps);
        self.came_back.truncate(credits);
        let held = &mut self.held[which];
        (held.is_live, held.goes) = (true, goes);
        if let Some(whole) = whole {
            held.granted = whole;
        }
        self.done.pop();
    }
}

fn try_every_order(algorithm: &impl Reserve, burst: u64, largest: u64, steps: u32) {
    let mut search = Search {
        algorithm,
        burst,
        largest,
        held: Vec::new(),
        came_back: Vec::new(),
        done: Vec::new(),
        cancelled_in_line: 0,
    };
    search.go_on(0, 0, steps + MORE);
    assert!(search.cancelled_in_line > 20);
}

fn quota(burst: u64) -> Quota {
    Quota::per(1, Duration::from_nanos(INTERVAL_NS)).burst(burst)
}

#[test]
fn reservations_of_a_token_bucket_are_never_early() {
    for (burst, steps) in [(1, 6), (2, 6), (3, 5)] {
        let bucket = TokenBucket::new(quota(burst)).expect("a quota");
        try_every_order(&bucket, burst, burst, steps);
    }
}

#[test]
fn reservations_of_a_queue_leave_at_the_rate() {
    for (burst, free) in [(1, 0), (3, 0), (3, 1), (4, 2), (4, 3)] {
        let queue = LeakyBucket::queue(quota(burst)).expect("a quota");
        try_every_order(&queue.free(free), free + 1, (free + 1).min(burst), 5);
    }
}
