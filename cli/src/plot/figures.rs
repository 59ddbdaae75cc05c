//! Counts of the answers, for the pictures.

use super::loads::END_NS;
use super::record::{Answered, Request};

/// The width of a bar, in nanoseconds.
pub(crate) const BIN_NS: u64 = 100_000_000;

/// The requests in a bin, and how many of them were admitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bin {
    pub(crate) offered: u64,
    pub(crate) admitted: u64,
}

/// Returns all bins, including empty ones.
pub(crate) fn bins(answered: &Answered) -> Vec<Bin> {
    let mut bins = vec![Bin::default(); (END_NS / BIN_NS) as usize];
    for request in &answered.requests {
        if let Some(bin) = bins.get_mut((request.at_ns / BIN_NS) as usize) {
            bin.offered += 1;
            bin.admitted += u64::from(request.leaves_ns.is_some());
        }
    }
    bins
}

/// Returns the arrival times of admitted requests.
pub(crate) fn admissions(answered: &Answered) -> Vec<u64> {
    let admitted = |one: &Request| one.leaves_ns.map(|_| one.at_ns);
    answered.requests.iter().filter_map(admitted).collect()
}

/// Returns the departure times, if a request departs later than it arrives.
pub(crate) fn departures(answered: &Answered) -> Option<Vec<u64>> {
    let is_delayed = |one: &Request| one.leaves_ns.is_some_and(|leaves| leaves > one.at_ns);
    if !answered.requests.iter().any(is_delayed) {
        return None;
    }
    let leaves = |one: &Request| one.leaves_ns;
    let mut leaves: Vec<_> = answered.requests.iter().filter_map(leaves).collect();
    leaves.sort_unstable();
    Some(leaves)
}

/// Returns how many moments lie within the last period, at each time at which this number changes.
/// The moments must be in order. The first entry is 0 at time 0.
pub(crate) fn running_count(moments: &[u64], period_ns: u64) -> Vec<(u64, u64)> {
    let changes = moments
        .iter()
        .flat_map(|&at| [(at, 1), (at.saturating_add(period_ns), -1)]);
    let mut changes: Vec<(u64, i64)> = changes.filter(|&(at, _)| at < END_NS).collect();
    changes.sort_unstable();
    let (mut counts, mut count) = (vec![(0, 0)], 0_u64);
    for (at, change) in changes {
        count = count.saturating_add_signed(change);
        match counts.last_mut() {
            Some(last) if last.0 == at => last.1 = count,
            _ => counts.push((at, count)),
        }
    }
    // Nothing changes if as many moments leave the period as enter it.
    counts.dedup_by_key(|&mut (_, count)| count);
    counts
}

/// Returns the highest count.
pub(crate) fn most(counts: &[(u64, u64)]) -> u64 {
    counts
        .iter()
        .map(|&(_, count)| count)
        .max()
        .unwrap_or_default()
}
