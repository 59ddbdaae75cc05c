//! Networks, found by an address in them.

/// Networks of one version of addresses, sorted so that a network comes before those inside it.
///
/// Two networks are either disjoint or one contains the other. So the networks of an address are
/// the last one that begins at or before the address, and those around that one, as far as they
/// contain the address.
#[derive(Debug, Default)]
pub(super) struct Networks<T> {
    starts: Vec<T>,
    ends: Vec<End<T>>,
}

#[derive(Debug)]
struct End<T> {
    last: T,
    /// The smallest network around this one.
    around: u32,
    node: u32,
}

impl<T: Copy + Ord> Networks<T> {
    /// Sorts networks, which are given by their first address, their last one and a node.
    pub(super) fn new(mut networks: Vec<(T, T, u32)>) -> Self {
        networks.sort_unstable_by(|(first, last, _), (other, other_last, _)| {
            first.cmp(other).then(other_last.cmp(last))
        });
        let starts = networks.iter().map(|(first, ..)| *first).collect();
        let mut open: Vec<(u32, T)> = Vec::new();
        let ends = (0..).zip(networks).map(|(index, (first, last, node))| {
            while open.last().is_some_and(|(_, last)| *last < first) {
                open.pop();
            }
            let around = open.last().map_or(u32::MAX, |(index, _)| *index);
            open.push((index, last));
            End { last, around, node }
        });
        let ends = ends.collect();
        Self { starts, ends }
    }

    /// Calls back the nodes of the networks of an address.
    pub(super) fn each(&self, address: T, mut found: impl FnMut(u32)) {
        let after = self.starts.partition_point(|start| *start <= address);
        let mut at = after.wrapping_sub(1);
        while let Some(end) = self.ends.get(at) {
            if address <= end.last {
                found(end.node);
            }
            at = end.around as usize;
        }
    }
}
