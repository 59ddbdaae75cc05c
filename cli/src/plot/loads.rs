//! What the algorithms are asked: three loads of single requests, each four periods long.
//!
//! Windows begin at each whole second. So that those which are opened by their first hit end at
//! about the same time, the third load begins with a lone request, a little more than a period
//! before its crowds.

/// When each load ends.
pub(crate) const END_NS: u64 = 4_000 * MS;

const MS: u64 = 1_000_000;

/// Requests over time.
pub(crate) struct Load {
    pub(crate) name: &'static str,
    /// What stands above it.
    pub(crate) title: &'static str,
    /// When somebody asks for a permit, in order.
    pub(crate) at_ns: Vec<u64>,
}

pub(crate) fn all() -> [Load; 3] {
    [steady(), burst(), edge()]
}

/// Two thirds above the limit.
fn steady() -> Load {
    Load {
        name: "steady",
        title: "steady: one every 60 ms",
        at_ns: every(30, 60).collect(),
    }
}

/// A crowd after idling, and then half of what the limit allows.
fn burst() -> Load {
    let crowd = (0..15).map(|_| 1500 * MS);
    Load {
        name: "burst",
        title: "15 at once, then 5 a second",
        at_ns: crowd.chain(every(1700, 200)).collect(),
    }
}

/// A crowd right before a window's end, and one right after it.
fn edge() -> Load {
    let crowd = |begin: u64| (0..15).map(move |i| (begin + 2 * i) * MS);
    let lone = [990 * MS];
    Load {
        name: "edge",
        title: "15 before an edge, 15 after it",
        at_ns: lone
            .into_iter()
            .chain(crowd(1950))
            .chain(crowd(2010))
            .collect(),
    }
}

/// From a millisecond on, every so many, to the end.
fn every(begin: u64, step: u64) -> impl Iterator<Item = u64> {
    (0..)
        .map(move |i| (begin + step * i) * MS)
        .take_while(|&at| at < END_NS)
}
