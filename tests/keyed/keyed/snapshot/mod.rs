//! A restored snapshot keeps its state, for each algorithm. No key exceeds its bound over the time
//! before and after, and a ban ends at its tick. Damaged or forged snapshots change nothing and
//! never panic.

mod bound;
mod carried;
mod damage;
mod elapsed;
mod elsewhere;
mod files;
mod forged;
mod names;
mod overrides;
mod protected;

mod threads;

use tollgate::algorithm::{Rebase, Settings};
use tollgate::error::RestoreError;
use tollgate::keyed::{KeyHasher, Restored, SeededHasher};

use crate::support::*;

const SECOND: Duration = Duration::from_secs(1);

fn ticks(seconds: f64) -> Tick {
    tick(0).saturating_add(Duration::from_secs_f64(seconds))
}

fn table<A: ChangeQuota>(algorithm: A, at: Tick) -> Keyed<A, ManualClock> {
    let table = of_capacity(1000, algorithm);
    table.clock().set(at);
    table
}

/// The same, with another seed until a snapshot is restored.
fn next_table<A: ChangeQuota>(algorithm: A, at: Tick) -> Keyed<A, ManualClock> {
    table(algorithm, at).with_hasher(SeededHasher::new([7 << 40, 9 << 50]))
}

fn written<A: ChangeQuota + Settings, S: KeyHasher>(limiter: &Keyed<A, ManualClock, S>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let keys = limiter.snapshot(&mut bytes).expect("nothing fails");
    assert!(keys <= limiter.len() as u64);
    bytes
}

/// Restores these bytes with no time since they were written.
fn read<A: ChangeQuota + Rebase + Settings, S: KeyHasher>(
    limiter: &mut Keyed<A, ManualClock, S>,
    mut bytes: &[u8],
) -> Result<Restored, RestoreError> {
    limiter.restore_after(&mut bytes, Duration::ZERO)
}

/// Restores these bytes, which are whole, into a table. Returns the table and the report.
#[track_caller]
fn whole<A: ChangeQuota + Rebase + Settings, S: KeyHasher>(
    mut table: Keyed<A, ManualClock, S>,
    bytes: &[u8],
) -> (Keyed<A, ManualClock, S>, Restored) {
    let restored = read(&mut table, bytes).expect("whole");
    (table, restored)
}

/// Returns another table on a clock at `at`, restored from this one after `elapsed`.
fn restarted<A: ChangeQuota + Rebase + Settings>(
    limiter: &Keyed<A, ManualClock>,
    algorithm: A,
    to: Tick,
    elapsed: Duration,
) -> Keyed<A, ManualClock> {
    let mut next = next_table(algorithm, to);
    let restored = next.restore_after(&mut written(limiter).as_slice(), elapsed);
    let restored = restored.expect("whole");
    let right = (next.len() as u64, 0, elapsed);
    assert_eq!((restored.keys, restored.no_room, restored.elapsed), right);
    next
}
