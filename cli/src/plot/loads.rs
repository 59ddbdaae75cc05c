//! The loads of the algorithms: three sequences of single requests, each four periods long.
//!
//! Aligned windows begin at each whole second. The third load begins with a lone request a little
//! more than a period before its bursts, so that first-hit windows end at about the same time as
//! the aligned ones.

/// When each load ends.
pub(crate) const END_NS: u64 = 4_000 * MS;

const MS: u64 = 1_000_000;

/// A sequence of requests.
pub(crate) struct Load {
    pub(crate) name: &'static str,
    /// The title above it.
    pub(crate) title: &'static str,
    /// When each request for a permit arrives, in order.
    pub(crate) at_ns: Vec<u64>,
}

pub(crate) fn all() -> [Load; 3] {
    [steady(), burst(), edge()]
}

/// A steady load, two thirds above the limit.
fn steady() -> Load {
    Load {
        name: "steady",
        title: "steady: one every 60 ms",
        at_ns: every(30, 60).collect(),
    }
}

/// A burst after idling, followed by half the limit.
fn burst() -> Load {
    let crowd = (0..15).map(|_| 1500 * MS);
    Load {
        name: "burst",
        title: "15 at once, then 5 a second",
        at_ns: crowd.chain(every(1700, 200)).collect(),
    }
}

/// A burst right before a window's end, and another right after it.
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

/// Returns the moments from one millisecond to the end, a step apart.
fn every(begin: u64, step: u64) -> impl Iterator<Item = u64> {
    (0..)
        .map(move |i| (begin + step * i) * MS)
        .take_while(|&at| at < END_NS)
}
