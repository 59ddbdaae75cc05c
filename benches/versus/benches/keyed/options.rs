//! The command-line options.

use std::env;

use tollgate_versus::keys::Spread;

use super::timing::Kind;

/// All measurements, unless the command line restricts them.
pub(crate) struct Options {
    pub(crate) rounds: usize,
    pub(crate) keys: Vec<u64>,
    pub(crate) threads: Vec<usize>,
    pub(crate) spreads: Vec<Spread>,
    pub(crate) kinds: Vec<Kind>,
    /// Whether a missed target is a failure.
    pub(crate) strict: bool,
    /// The file for the figures as JSON.
    pub(crate) json: Option<String>,
}

pub(crate) const USAGE: &str = "cargo bench -p tollgate-versus --bench keyed -- [--strict] [--rounds N] \
[--keys N,N] [--threads 1,2] [--spreads uniform,zipf] [--kinds allowed,denied] \
[--json FILE]";

impl Options {
    /// Reads the command line.
    pub(crate) fn read() -> Result<Self, String> {
        let mut options = Self {
            rounds: 9,
            keys: vec![1000, 1_000_000, 10_000_000],
            threads: vec![1, 2],
            spreads: Spread::BOTH.to_vec(),
            kinds: Kind::BOTH.to_vec(),
            strict: false,
            json: None,
        };
        let mut is_bench = false;
        let mut arguments = env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut list = || {
                arguments
                    .next()
                    .ok_or_else(|| format!("{argument} needs a value"))
            };
            match argument.as_str() {
                // Cargo passes this argument.
                "--bench" => is_bench = true,
                "--strict" => options.strict = true,
                "--json" => options.json = Some(list()?),
                "--rounds" => options.rounds = number::<usize>(&list()?)?.max(1),
                "--keys" => options.keys = each(&list()?, number)?,
                "--threads" => options.threads = each(&list()?, number)?,
                "--spreads" => {
                    options.spreads =
                        each(&list()?, |name| one_of(Spread::BOTH, Spread::name, name))?;
                }
                "--kinds" => {
                    options.kinds = each(&list()?, |name| one_of(Kind::BOTH, Kind::name, name))?;
                }
                _ => return Err(format!("unknown argument {argument}")),
            }
        }
        if !is_bench {
            // `cargo test` only checks that it runs.
            (options.rounds, options.keys) = (1, vec![1000]);
        }
        Ok(options)
    }
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}

fn one_of<T: Copy>(
    all: [T; 2],
    name: impl Fn(T) -> &'static str,
    wanted: &str,
) -> Result<T, String> {
    let found = all.into_iter().find(|one| name(*one) == wanted);
    found.ok_or_else(|| format!("unknown value {wanted}"))
}

fn each<T>(list: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    list.split(',').map(read).collect()
}
