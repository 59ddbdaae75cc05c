//! Measures the memory of a key in tollgate's table and in governor's default keyed limiter, how
//! many new keys find no slot in a table of busy keys, and how long it takes to create a table.
//!
//!     cargo run --release -p tollgate-versus --example keyed_memory [-- --strict --keys 1000000]
//!
//! The figures are bytes requested from the allocator and bytes resident in memory (`VmRSS`, on
//! Linux), divided by the number of keys in the limiter. Each row runs in its own process. With
//! `--strict` a missed target is a failure.

mod rows;

use std::env;
use std::process::{Command, ExitCode, Stdio};

use rows::{ROWS, run};
use tollgate_versus::memory::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

const USAGE: &str = "keyed_memory [--strict] [--keys N,N]";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let said = match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        // The arguments of a row's own process.
        ["row", name, keys] => keys
            .parse()
            .map_err(|_| format!("{keys} is not a number"))
            .and_then(|keys| run(name, keys))
            .map(|()| true),
        rest => compare(rest),
    };
    match said {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Runs all rows. Returns false if `--strict` is given and a target is missed.
fn compare(arguments: &[&str]) -> Result<bool, String> {
    let (mut strict, mut sizes) = (false, vec![1_000_000_u64, 10_000_000]);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--strict" => strict = true,
            "--keys" => {
                let list = arguments.next().ok_or(USAGE)?.split(',');
                let list: Result<_, _> = list.map(str::parse).collect();
                sizes = list.map_err(|_| USAGE)?;
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    let mut missed = 0;
    for keys in sizes {
        println!("{keys} keys");
        for (name, _) in ROWS {
            let found = in_its_own_process(name, keys)?;
            missed += found
                .lines()
                .filter(|line| line.ends_with("MISSED"))
                .count();
            print!("{found}");
        }
        println!();
    }
    match missed {
        0 => println!("all targets met"),
        _ => println!("{missed} targets missed"),
    }
    Ok(!strict || missed == 0)
}

/// Runs a row in its own process, and returns its output. No other row affects its memory.
fn in_its_own_process(name: &str, keys: u64) -> Result<String, String> {
    let failed = |error| format!("{name}: {error}");
    let program = env::current_exe().map_err(failed)?;
    let output = Command::new(program)
        .args(["row", name, &keys.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .map_err(failed)?;
    if !output.status.success() {
        return Err(format!("{name}: {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{name}: {error}"))
}
