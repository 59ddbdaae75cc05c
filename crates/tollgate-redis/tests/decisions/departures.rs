//! What is given back to a queue lets no later caller leave faster than the queue's rate: nothing
//! comes back while others wait behind the grant.

use std::time::Duration;

use tollgate::Quota;

use super::logs::send;
use super::{Random, SOME_DAY, server};
use crate::limit::Limit;
use crate::limit::kind::Kind;
use crate::limiter::decision::Grant;
use crate::server::call::{self, Part};

/// The time from one permit to the next, in microseconds: an hour. A key expires when the server's
/// own clock says that the queue is idle, and no test is slow enough to see that.
const STEP: u64 = 3_600_000_000;

/// Operations in each history.
const LENGTH: usize = 60;

/// A queue on a server, with a clock that the test sets.
struct Queue<'a> {
    key: String,
    kind: Kind,
    now: u64,
    connection: &'a mut redis::Connection,
}

impl<'a> Queue<'a> {
    /// One an hour, at most 20 in the queue.
    fn new(key: String, free: u64, connection: &'a mut redis::Connection) -> Self {
        let quota = Quota::per_hour(1).burst(20);
        let kind = Limit::leaky_queue(quota, free).expect("accepted").kind;
        let now = SOME_DAY as u64;
        Self {
            key,
            kind,
            now,
            connection,
        }
    }

    fn part(&self, n: u64) -> Part<'_> {
        Part {
            key: self.key.as_bytes(),
            kind: &self.kind,
            n,
        }
    }

    /// Takes permits as `try_acquire_n` does.
    fn take(&mut self, n: u64) -> Option<Grant> {
        let call = call::take(&[self.part(n)]).expect("not never");
        let reply = send(&call, self.now.into(), self.connection);
        let taken = call::taken(&[self.part(n)], &reply)
            .expect("a reply")
            .ok()?;
        Some(Grant::by_server(taken.into_iter().next()?, false))
    }

    /// Takes permits as `reserve_within` does.
    fn reserve(&mut self, n: u64, wait: u64) -> Option<Grant> {
        let call = call::reserve(self.part(n), wait).expect("not never");
        let reply = send(&call, self.now.into(), self.connection);
        let taken = call::reserved(self.part(n), wait, &reply).expect("a reply");
        Some(Grant::by_server(taken.ok()?, true))
    }

    /// Gives `n` permits of a grant back, as `undo` and `settle` do.
    fn give(&mut self, grant: &Grant, n: u64) -> u64 {
        let call = call::give(&[(self.part(n), Some(grant.mark()))]);
        let reply = send(&call, self.now.into(), self.connection);
        call::given(&[(self.part(n), Some(grant.mark()))], &reply).expect("a reply")[0]
    }
}

/// Returns the microsecond at which a grant leaves.
fn leaves(grant: &Grant) -> u64 {
    grant.granted.due().as_nanos() / 1000
}

#[test]
fn callers_that_change_their_minds_let_none_leave_faster_than_the_rate() {
    server::on_each_server(|connection| {
        let mut random = Random(0xDE_9A47);
        for round in 0..40 {
            let (free, most) = (random.below(4), 1 + random.below(3));
            let mut queue = Queue::new(format!("queue{round}"), free, connection);
            let (mut callers, mut left) = (Vec::<Grant>::new(), Vec::new());
            for _ in 0..LENGTH {
                let n = 1 + random.below(most);
                match random.below(8) {
                    0 => queue.now += random.below(STEP * 5 / 2),
                    1..4 => callers.extend(queue.take(n)),
                    4 => callers.extend(queue.reserve(n, random.below(30 * STEP))),
                    _ if callers.is_empty() => {}
                    way => {
                        // The last in line more often than others.
                        let behind = random.any_size(callers.len() as u64 - 1) as usize;
                        let grant = callers.remove(callers.len() - 1 - behind);
                        let (leaves, n) = (leaves(&grant), grant.granted.n());
                        // What a caller costs is known after it has left.
                        let unused = match way == 7 && leaves <= queue.now {
                            true => random.below(n + 1),
                            false => n,
                        };
                        let back = queue.give(&grant, unused);
                        if leaves <= queue.now {
                            left.extend([(leaves, n as i64), (queue.now, -(back as i64))]);
                        }
                    }
                }
            }
            left.extend(
                callers
                    .iter()
                    .map(|one| (leaves(one), one.granted.n() as i64)),
            );
            assert_rate(
                &mut left,
                most.max(free + 1),
                &format!("round {round}, free {free}"),
            );
        }
    });
}

/// Checks that in no interval more leave than `at_once` and what the rate allows.
fn assert_rate(left: &mut [(u64, i64)], at_once: u64, label: &str) {
    left.sort_unstable();
    for (i, (begin, _)) in left.iter().enumerate() {
        if i > 0 && left[i - 1].0 == *begin {
            continue;
        }
        let mut sum = 0;
        for (j, (end, n)) in left.iter().enumerate().skip(i) {
            sum += n;
            let is_whole = left.get(j + 1).is_none_or(|next| next.0 > *end);
            let most = (at_once + (end - begin) / STEP) as i64;
            assert!(
                !is_whole || sum <= most,
                "{label}: {sum} left from {begin} to {end} us, but at most {most} may: {left:?}"
            );
        }
    }
}

#[test]
fn the_last_in_line_gives_back_all_and_others_none() {
    server::on_each_server(|connection| {
        for free in [0, 1, 3] {
            let mut queue = Queue::new(format!("line{free}"), free, connection);
            let mut line: Vec<_> = (0..20).map(|_| queue.take(1).expect("a place")).collect();
            let last = line.pop().expect("twenty");
            for grant in &line {
                assert_eq!(queue.give(grant, 1), 0, "another caller waits behind it");
            }
            assert!(queue.take(1).is_none(), "the places were lost");
            assert_eq!(queue.give(&last, 1), 1);
            let next = queue.take(1).expect("the last place");
            assert_eq!(leaves(&next), leaves(&last));

            // One that waits within the burst keeps those behind it as one beyond the burst does.
            queue.now += 10 * STEP;
            let first = queue.reserve(1, 60 * STEP).expect("a place");
            let last = queue.reserve(1, 60 * STEP).expect("a place");
            assert_eq!((queue.give(&first, 1), queue.give(&last, 1)), (0, 1));
        }
    });
}

#[test]
fn when_no_caller_waits_any_more_an_undo_gives_back_what_is_not_refilled() {
    server::on_each_server(|connection| {
        let mut queue = Queue::new("served".to_owned(), 3, connection);
        let line: Vec<_> = (0..6).map(|_| queue.take(1).expect("a place")).collect();
        queue.now += 2 * STEP - 1;
        assert_eq!(queue.give(&line[4], 1), 0, "the last one leaves in 1 us");
        queue.now += 1;
        assert_eq!(queue.give(&line[3], 1), 1);
        assert_eq!(queue.give(&line[0], 1), 0, "the clock has refilled it");
        let next = queue.take(1).expect("a free permit");
        assert_eq!(next.granted.delay(), Duration::ZERO);
    });
}
