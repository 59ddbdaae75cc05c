//! What is promised of every interval, checked by brute force.

/// One turn: when, and how many permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Gone {
    pub(crate) due: u64,
    /// Which of those at one tick came first: the one whose state was the lower.
    pub(crate) n: u64,
}

/// In each interval from one due tick to another: the permits of all turns in it but the last, which are to be paid
/// within it, are at most `stored + rate * interval`. Says by how much it is exceeded, at worst.
pub(crate) fn excess(gone: &mut [Gone], rate: f64, stored: f64) -> f64 {
    gone.sort();
    // Before the turns of a tick have been given all of them have; of those at the last tick the largest is
    // the one that is left out.
    let mut worst = f64::NEG_INFINITY;
    for first in 0..gone.len() {
        let mut sum = 0;
        for last in first + 1..gone.len() {
            sum += gone[last - 1].n;
            let interval = (gone[last].due - gone[first].due) as f64 / 1e9;
            worst = worst.max(sum as f64 - stored - rate * interval);
        }
    }
    worst
}

#[test]
fn a_turn_that_comes_too_early_is_found() {
    let gone =
        |dues: &[u64]| -> Vec<Gone> { dues.iter().map(|&due| Gone { due, n: 10 }).collect() };
    let second = 1_000_000_000;
    let mut steady = gone(&[0, second, 2 * second, 3 * second]);
    assert_eq!(excess(&mut steady, 10.0, 0.0), 0.0);
    let mut early = gone(&[0, second, 2 * second - 1, 3 * second]);
    assert!(excess(&mut early, 10.0, 0.0) > 0.0);
    assert!(excess(&mut early, 10.0, 1.0) < 0.0);
}
