//! Measures a flood of new keys. Does it give a fresh burst to a key that has spent its own, how
//! long do decisions on known keys take, and does memory grow?
//!
//!     cargo run --release -p tollgate-versus --example keyed_flood [-- resets|cost] [--strict]
//!
//! - `resets` prints Markdown tables: what each `Overflow` does under each kind of flood, with
//!   `--flood N` new keys in each case (default five million). `--seed N` changes how keys are
//!   hashed; with one seed every run has the same numbers.
//! - `cost` measures one kind of flood in a large table: the time of decisions and the memory, with
//!   `--keys N` new keys (default 20 million).
//!
//! Without either word it does both. With `--strict` a missed target is a failure.

mod cost;
mod floods;
mod resets;
mod scene;

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
    /// The new keys in each case of `resets`.
    flood: u64,
    /// The new keys in each scene of `cost`.
    keys: u64,
    seed: u64,
}

impl Options {
    /// Returns `None` if an argument is unknown, or not a valid number.
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
        0 => println!("all targets met"),
        _ => println!("{missed} targets missed"),
    }
    ExitCode::from(u8::from(options.strict && missed > 0))
}
