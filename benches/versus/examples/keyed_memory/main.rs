//! What a key takes of memory, in tollgate's table and in governor's keyed limiter as people have
//! it; how many new keys find no room in a table of keys that are all in use; and how long a table
//! takes to make.
//!
//!     cargo run --release -p tollgate-versus --example keyed_memory [-- --strict --keys 1000000]
//!
//! Bytes are what the allocator was asked for and what the process has in memory (`VmRSS`, on
//! Linux), each row in a process of its own, divided by the keys that are in the limiter. With
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
        // What a row's own process is told.
        ["row", name, keys] => keys
            .parse()
            .map_err(|_| format!("{keys} is no number"))
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

/// Whether all is as it should be, or nobody asked.
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
        _ => println!("{missed} of the targets missed"),
    }
    Ok(!strict || missed == 0)
}

/// What this row prints. Nothing of another row is in its memory.
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
