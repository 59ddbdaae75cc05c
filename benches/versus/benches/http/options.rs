//! The command-line options.

use std::env;

/// All measurements, unless the command line restricts them.
pub(crate) struct Options {
    pub(crate) rounds: usize,
    pub(crate) threads: Vec<usize>,
    /// Whether a missed target is a failure.
    pub(crate) check: bool,
    /// The file for the figures as JSON.
    pub(crate) json: Option<String>,
}

pub(crate) const USAGE: &str = "cargo bench -p tollgate-versus --bench http -- [--check] [--rounds N] \
[--threads 1,2] [--json FILE]";

impl Options {
    /// Reads the command line.
    pub(crate) fn read() -> Result<Self, String> {
        let mut options = Self {
            rounds: 15,
            threads: vec![1, 2],
            check: false,
            json: None,
        };
        let mut is_bench = false;
        let mut arguments = env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.ok_or_else(|| format!("{argument} needs a value"))
            };
            match argument.as_str() {
                // Cargo passes this argument.
                "--bench" => is_bench = true,
                "--check" => options.check = true,
                "--json" => options.json = Some(value()?),
                "--rounds" => options.rounds = number(&value()?)?,
                "--threads" => {
                    options.threads = value()?.split(',').map(number).collect::<Result<_, _>>()?;
                }
                _ => return Err(format!("unknown argument {argument}")),
            }
        }
        if !is_bench {
            // `cargo test` only checks that it runs.
            options.rounds = 1;
        }
        Ok(options)
    }
}

fn number(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{text} is not a number above 0")),
    }
}
