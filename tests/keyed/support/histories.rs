//! The grants that threads recorded, and whether each key kept its bound.

use tollgate::algorithm::ChangeQuota;
use tollgate_audit::{Audit, Bound, Bounded, Log};

use super::*;

/// Returns the history of each key from the logs that each thread kept.
pub(crate) fn of_each(logs: &[Vec<Log>]) -> Vec<Audit> {
    let keys = 0..logs.first().map_or(0, Vec::len);
    let of_key = |key: usize| logs.iter().map(|logs| logs[key].clone()).collect();
    keys.map(of_key).collect()
}

/// Asserts that the keys together got at most this many bursts beyond their bounds. Returns the
/// number.
pub(crate) fn bursts_more(histories: &[Audit], text: &str, at_most: u64) -> u64 {
    let (of, quota) = (algorithm(text), algorithm(text).quota());
    let bound = |bursts| match bursts {
        0 => of.bound(),
        more => Bound::of_quota(quota.burst(quota.burst_size() * (1 + more))).expect("a quota"),
    };
    let mut more = 0;
    for history in histories {
        let mut bursts = 0;
        while let Err(excess) = history.check(&bound(bursts)) {
            (bursts, more) = (bursts + 1, more + 1);
            assert!(more <= at_most, "{more} of {at_most}, {excess}, {text}");
        }
    }
    more
}
