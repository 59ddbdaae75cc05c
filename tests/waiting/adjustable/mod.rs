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

const KEEPS: [Keep; 4] = [Keep::AsIs, Keep::Scaled, Keep::Used, Keep::Fresh];

/// In debug builds threads take fewer permits.
const MANY: u64 = debug_or_release(2_000, 20_000);

/// Every kind of algorithm, small and large, and one that starts with less than its burst.
fn all() -> impl Iterator<Item = AnyAlgorithm> {
    let texts = KINDS
        .into_iter()
        .chain(["intervals 10/s burst 20 initial 4"]);
    texts.map(algorithm)
}

fn adjustable(algorithm: AnyAlgorithm, start: Tick) -> Adjustable<AnyAlgorithm, NoClock> {
    Adjustable::starting_at(algorithm, NoClock, start)
}
