//! The rows of compositions: limits that are taken from all or nothing, at a given tick. The rows
//! `plain` make the members' own decisions, one after the other, without undoing.

use std::hint::black_box;

use tollgate::clock::{Clock, SystemClock};
use tollgate::compose::{All, Member, Members};
use tollgate::keyed::Key;
use tollgate::{Concurrency, Gcra, Keyed, Limiter, Tick, TokenBucket};

use crate::{Row, SOON, bucket, dry, gcra, times, wide};

type Bucket<C = SystemClock> = Limiter<TokenBucket, C>;
type Dyn = Box<dyn Member<SystemClock> + Send + Sync>;
/// Another algorithm than the rows of `keyed` have. They would otherwise be compiled with these
/// callers in view, and be counted otherwise.
type Users = Keyed<Gcra>;
type User<'u> = Key<&'u Users>;

/// The wrappers. callgrind recognizes them by `counted_` in their names.
mod counted {
    use super::*;

    #[inline(never)]
    pub(super) fn counted_all_at<M: Members<C>, C>(all: &All<M, C>, now: Tick) -> bool {
        all.at(now).try_acquire_n(1).is_ok()
    }

    #[inline(never)]
    pub(super) fn counted_each_at<M: Members<C>, C, const N: usize>(
        all: &All<M, C>,
        costs: [u64; N],
        now: Tick,
    ) -> bool {
        all.at(now).try_acquire_each(costs).is_ok()
    }

    #[inline(never)]
    pub(super) fn counted_all<M: Members<C>, C: Clock>(all: &All<M, C>) -> bool {
        all.try_acquire().is_ok()
    }

    #[inline(never)]
    pub(super) fn counted_plain_two(a: &Bucket, b: &Bucket, now: Tick) -> bool {
        a.at(now).try_acquire().is_ok() & b.at(now).try_acquire().is_ok()
    }

    #[inline(never)]
    pub(super) fn counted_plain_three(a: &Bucket, b: &Bucket, c: &Bucket, now: Tick) -> bool {
        a.at(now).try_acquire().is_ok()
            & b.at(now).try_acquire().is_ok()
            & c.at(now).try_acquire().is_ok()
    }

    #[inline(never)]
    pub(super) fn counted_plain_keys(a: &User<'_>, b: &User<'_>, now: Tick) -> bool {
        a.at(now).try_acquire().is_ok() & b.at(now).try_acquire().is_ok()
    }

    #[inline(never)]
    pub(super) fn counted_plain_key_limiter(key: &User<'_>, limit: &Bucket, now: Tick) -> bool {
        key.at(now).try_acquire().is_ok() & limit.at(now).try_acquire().is_ok()
    }

    #[inline(never)]
    pub(super) fn counted_plain_key_concurrency(
        key: &User<'_>,
        inside: &Concurrency,
        now: Tick,
    ) -> bool {
        key.at(now).try_acquire().is_ok() & inside.try_enter().is_ok()
    }
}
use counted::*;

/// Returns a started bucket that does not run dry within a run, or one that is empty.
fn made(full: bool) -> Bucket {
    let limiter = Limiter::unstarted(bucket(if full { wide() } else { dry() }), SystemClock);
    limiter.at(Tick::ZERO).start();
    if !full {
        assert!(limiter.at(SOON).try_acquire().is_ok());
    }
    limiter
}

fn two(a: bool, b: bool) -> (Bucket, Bucket) {
    (made(a), made(b))
}

fn boxed(full: bool) -> Dyn {
    Box::new(made(full))
}

fn composed<M: Members<SystemClock>>(members: M, allowed: bool, count: u64) -> u64 {
    let (all, now) = (
        black_box(All::new(members).expect("limits")),
        black_box(SOON),
    );
    times(count, || counted_all_at(&all, now) == allowed)
}

/// Returns a table whose keys "alice" and "bob" have been asked for twice, so that each has a word.
fn users(full: bool) -> Users {
    let users = Keyed::new(gcra(if full { wide() } else { dry() }), 1000).expect("a table");
    for name in ["alice", "bob"] {
        for _ in 0..2 {
            let granted = users.key(name).at(SOON).try_acquire().is_ok();
            assert!(granted || !full);
        }
    }
    users
}

fn plain(full: bool, count: u64) -> u64 {
    let ((a, b), now) = (black_box(two(full, full)), black_box(SOON));
    times(count, || counted_plain_two(&a, &b, now) == full)
}

pub(crate) static COMPOSED: &[Row] = &[
    ("plain-two-at-allowed", |count| plain(true, count)),
    ("plain-two-at-denied", |count| plain(false, count)),
    ("plain-three-at-allowed", |count| {
        let (a, b, c) = black_box((made(true), made(true), made(true)));
        let now = black_box(SOON);
        times(count, || counted_plain_three(&a, &b, &c, now))
    }),
    ("all-two-at-allowed", |count| {
        composed(two(true, true), true, count)
    }),
    // References, the second limit before the first in memory.
    ("all-two-refs-at-allowed", |count| {
        let limits = [made(true), made(true)];
        composed((&limits[1], &limits[0]), true, count)
    }),
    ("all-two-at-denied-first", |count| {
        composed(two(false, true), false, count)
    }),
    ("all-two-at-denied-second", |count| {
        composed(two(true, false), false, count)
    }),
    ("all-two-at-denied-both", |count| {
        composed(two(false, false), false, count)
    }),
    ("all-two-each-at-allowed", |count| {
        let all = black_box(All::new(two(true, true)).expect("limits"));
        let (costs, now) = (black_box([1, 3]), black_box(SOON));
        times(count, || counted_each_at(&all, costs, now))
    }),
    ("all-two-allowed", |count| {
        let all = black_box(All::new(two(true, true)).expect("limits"));
        all.now(); // The first reading calibrates the clock.
        times(count, || counted_all(&all))
    }),
    ("all-array-at-allowed", |count| {
        composed([made(true), made(true)], true, count)
    }),
    ("all-array-at-denied", |count| {
        composed([made(true), made(false)], false, count)
    }),
    ("all-dyn-at-allowed", |count| {
        composed([boxed(true), boxed(true)], true, count)
    }),
    ("all-dyn-at-denied", |count| {
        composed([boxed(true), boxed(false)], false, count)
    }),
    ("all-vec-dyn-at-allowed", |count| {
        composed(vec![boxed(true), boxed(true)], true, count)
    }),
    ("all-vec-dyn-at-denied", |count| {
        composed(vec![boxed(true), boxed(false)], false, count)
    }),
    ("all-three-at-allowed", |count| {
        composed((made(true), made(true), made(true)), true, count)
    }),
    ("all-eight-at-allowed", |count| {
        composed([(); 8].map(|()| made(true)), true, count)
    }),
    ("all-eight-at-denied", |count| {
        composed([(); 8].map(|()| made(false)), false, count)
    }),
    ("all-three-at-denied", |count| {
        composed((made(true), made(true), made(false)), false, count)
    }),
    ("plain-keys-at-allowed", |count| {
        let users = users(true);
        let (a, b) = black_box((users.key("alice"), users.key("bob")));
        let now = black_box(SOON);
        times(count, || counted_plain_keys(&a, &b, now))
    }),
    ("all-keys-at-allowed", |count| {
        let users = users(true);
        composed((users.key("alice"), users.key("bob")), true, count)
    }),
    ("all-keys-at-denied", |count| {
        let (full, empty) = (users(true), users(false));
        composed((full.key("alice"), empty.key("bob")), false, count)
    }),
    ("plain-key-limiter-at-allowed", |count| {
        let (users, limit) = (users(true), black_box(made(true)));
        let (key, now) = (black_box(users.key("alice")), black_box(SOON));
        times(count, || counted_plain_key_limiter(&key, &limit, now))
    }),
    ("all-key-limiter-at-allowed", |count| {
        composed((users(true).key("alice"), made(true)), true, count)
    }),
    ("plain-key-inside-at-allowed", |count| {
        let (users, inside) = (users(true), black_box(Concurrency::new(9).expect("a size")));
        let (key, now) = (black_box(users.key("alice")), black_box(SOON));
        times(count, || counted_plain_key_concurrency(&key, &inside, now))
    }),
    ("all-key-inside-at-allowed", |count| {
        let inside = Concurrency::new(9).expect("a size");
        composed((users(true).key("alice"), inside), true, count)
    }),
];
