//! Quotas that change in use. After a change the state is the one that its [`Keep`] describes. A
//! refused quota changes nothing. No decision mixes two quotas, and each quota keeps its bound
//! under threads.

mod kept;
mod model;
mod regularly;
mod reserved;
mod restored;
mod stuck;
mod threads;
mod whole;

use crate::support::*;

const KEEPS: [Keep; 3] = [Keep::AsIs, Keep::Scaled, Keep::Fresh];

/// In debug builds threads take fewer permits.
const MANY: u64 = debug_or_release(2_000, 20_000);

/// Every kind of algorithm, small and large.
fn all() -> [AnyAlgorithm; 14] {
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
    texts.map(algorithm)
}

fn adjustable(algorithm: AnyAlgorithm, start: Tick) -> Adjustable<AnyAlgorithm, NoClock> {
    Adjustable::starting_at(algorithm, NoClock, start)
}
