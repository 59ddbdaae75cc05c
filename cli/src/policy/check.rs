//! `tollgate check`: all errors and warnings of a policy.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use tollgate_policy::Problems;
use tollgate_redis::Keys;

use super::exit_code::{INVALID, unusable};
use super::registered::Registered;
use super::source::Source;

/// Check a policy: find all its errors and warnings
///
/// Each line has the file, the line, the column, the field, its value, and what is allowed. The
/// exit code is 0 if there are no errors, 1 if there are errors, and 2 if the file can't be read.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The policy, in TOML, or in JSON if its name ends in .json
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    registered: Registered,

    /// A fact that the program computes: a resolver of keys or a lookup of plans; can be given
    /// several times
    #[arg(long = "fact", value_name = "NAME")]
    facts: Vec<String>,

    /// Print JSON: an object {"file", "rules" (their number, null if the file can't be read as a
    /// policy), "errors", "warnings", "problems": [{"file", "line", "column", "severity", "field",
    /// "value", "message"}]}
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'r> {
    file: &'r str,
    rules: Option<usize>,
    errors: usize,
    warnings: usize,
    problems: &'r Problems,
}

/// Prints the problems of a policy.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let source = match Source::open(&arguments.file) {
        Ok(source) => source,
        Err(message) => return Ok(unusable(&message)),
    };
    let rules = source.read().ok().map(|file| file.rules.len());
    let facts = arguments.facts.iter().map(String::as_str);
    let keys = Keys::new("check")?;
    let problems = source.check(arguments.registered.builder(keys, facts));
    let mut out = io::stdout().lock();
    if arguments.json {
        let report = Report {
            file: &source.name,
            rules,
            errors: problems.errors(),
            warnings: problems.warnings(),
            problems: &problems,
        };
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        if !problems.is_empty() {
            writeln!(out, "{problems}")?;
        }
        writeln!(out, "{}: {}", source.name, summary(&problems, rules))?;
    }
    out.flush()?;
    Ok(match problems.has_errors() {
        true => ExitCode::from(INVALID),
        false => ExitCode::SUCCESS,
    })
}

/// Returns the last line, such as `2 errors, 1 warning`.
fn summary(problems: &Problems, rules: Option<usize>) -> String {
    let count = |n: usize, what: &str| match n {
        0 => None,
        1 => Some(format!("1 {what}")),
        _ => Some(format!("{n} {what}s")),
    };
    let errors = count(problems.errors(), "error");
    let warnings = count(problems.warnings(), "warning");
    if errors.is_some() {
        let parts: Vec<_> = errors.into_iter().chain(warnings).collect();
        return parts.join(", ");
    }
    let rules = count(rules.unwrap_or_default(), "rule").unwrap_or("no rules".into());
    format!("{rules}, {}", warnings.unwrap_or("no problems".into()))
}
