//! Measures tollgate beside governor, ratelimit and leaky-bucket: the same loop, each with an
//! equivalent limit and its own clock. `scripts/bench-check` computes the ratios.

#[path = "../../../contestants/asked.rs"]
mod asked;
#[path = "../../../contestants/bucket.rs"]
mod bucket;
#[path = "../../../contestants/timing.rs"]
mod timing;

use std::time::Duration;

use asked::Asked;
use bucket::{COARSE, Measured, ToldLimiter, keep_coarse};
use criterion::{Criterion, SamplingMode};
use timing::{Aligned, Contestant, Kind, Runner, time};
use tollgate::clock::SystemClock;
use tollgate::error::QuotaError;
use tollgate_versus::Ask;
use tollgate_versus::peers::{Governor, LeakyBucket, Limit, Ratelimit};

fn main() {
    let upkeep = keep_coarse().expect("a thread can be started");
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(500))
        .configure_from_args();
    for kind in Kind::BOTH {
        let contestants = contestants(kind).expect("quotas that can be represented");
        for threads in [1, 2] {
            let name = format!("versus_{}_{threads}", kind.name());
            let mut group = criterion.benchmark_group(name);
            group.sampling_mode(SamplingMode::Flat);
            for (name, contestant) in &contestants {
                group.bench_function(*name, |bencher| {
                    bencher.iter_custom(|turns| {
                        time(&**contestant, kind, threads, turns)
                            .unwrap_or_else(|error| panic!("{name}: {error}"))
                    });
                });
            }
            group.finish();
        }
    }
    criterion.final_summary();
    drop(upkeep);
}

type Named = (&'static str, Box<dyn Runner>);

fn contestants(kind: Kind) -> Result<Vec<Named>, QuotaError> {
    Ok(vec![
        ("tollgate_system", boxed(Measured::new(kind, SystemClock)?)),
        ("governor_system", peer(kind, Governor::system)),
        ("tollgate_coarse", boxed(Measured::new(kind, &COARSE)?)),
        ("governor_coarse", peer(kind, Governor::coarse)),
        ("tollgate_tick", boxed(ToldLimiter::new(kind)?)),
        ("ratelimit", peer(kind, Ratelimit::new)),
        ("leaky_bucket", peer(kind, LeakyBucket::new)),
    ])
}

fn boxed<C: Contestant + 'static>(contestant: C) -> Box<dyn Runner> {
    Box::new(Aligned(contestant))
}

fn peer<G: Ask + 'static>(kind: Kind, new: fn(Limit) -> G) -> Box<dyn Runner> {
    boxed(Asked::checked(kind, new).expect("a peer that decides correctly"))
}
