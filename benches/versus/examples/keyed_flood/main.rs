//! A flood of keys that were never seen before: does any key that has spent all get a fresh burst
//! by it, how long do decisions on known keys take, and does memory move?
//!
//!     cargo run --release -p tollgate-versus --example keyed_flood [-- resets|cost] [--strict]
//!
//! - `resets` prints Markdown tables: what each `Overflow` does under each kind of flood
//!   (`--flood N` new keys in each case, five million if it is not given). `--seed N` hashes the
//!   keys another way; with one seed the numbers are the same in each run.
//! - `cost` is one kind of flood in a large table, with the time of decisions and the memory
//!   (`--keys N` new keys, 20 million if it is not given).
//!
//! Without either word it does both. With `--strict` a missed target is a failure.

mod cost;
mod floods;
mod resets;
mod scene;
mod stores;

use std::env;
use std::process::ExitCode;

use tollgate_versus::memory::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

const USAGE: &str = "keyed_flood [resets|cost] [--strict] [--flood N] [--keys N] [--seed N]";

struct Options {
    resets: bool,
    cost: bool,
    strict: bool,
    /// New keys in each case of `resets`.
    flood: u64,
    /// New keys in each scene of `cost`.
    keys: u64,
    seed: u64,
}

impl Options {
    /// `None` if an argument is unknown, or not the number that it should be.
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self {
            resets: true,
            cost: true,
            strict: false,
            flood: 5_000_000,
            keys: 20_000_000,
            seed: 1,
        };
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next()?.parse().ok();
            match argument.as_str() {
                "resets" => options.cost = false,
                "cost" => options.resets = false,
                "--strict" => options.strict = true,
                "--flood" => options.flood = number()?,
                "--keys" => options.keys = number()?,
                "--seed" => options.seed = number()?,
                _ => return None,
            }
        }
        (options.resets || options.cost).then_some(options)
    }
}

fn main() -> ExitCode {
    let Some(options) = Options::parse(env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let mut missed = 0;
    if options.resets {
        missed += resets::print(options.flood, options.seed);
    }
    if options.cost {
        missed += cost::print(options.keys);
    }
    match missed {
        0 => println!("all as it should be"),
        _ => println!("{missed} not as they should be"),
    }
    ExitCode::from(u8::from(options.strict && missed > 0))
}
