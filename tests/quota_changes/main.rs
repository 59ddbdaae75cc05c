//! Quotas changed in use: what is there after a change is what its `Keep` says, for each algorithm; a refused quota
//! changes nothing; and whatever threads do meanwhile, no decision mixes two quotas, each quota's bound is kept,
//! and no permit comes from nowhere.

mod kept;
mod model;
mod regularly;
mod threads;
mod waiting;

use tollgate::AnyAlgorithm;

/// Every kind of algorithm, small ones and large ones.
fn all() -> Vec<AnyAlgorithm> {
    let texts = [
        "token-bucket 10/s",
        "token-bucket 13/s burst 40",
        "gcra 10/s burst 3",
        "gcra 1/10ms tolerance 25ms",
        "leaky-meter 10/s burst 20",
        "leaky-queue 7/min burst 5 free 2",
        "fixed-window 10/s",
        "fixed-window 100/min offset 7s",
        "fixed-window 5/s first-hit",
        "sliding-window 10/s",
        "sliding-window 50/min origin 9s rounding down",
        "intervals 10/s burst 20",
        "intervals 10/s burst 20 initial 4",
        "intervals 10/s burst 25 greedy",
    ];
    texts.map(|text| text.parse().expect(text)).into()
}

/// splitmix64: a repeatable stream.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}
