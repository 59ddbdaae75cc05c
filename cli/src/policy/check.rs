//! `tollgate check`: all errors and warnings of a policy.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use tollgate_policy::file::PolicyFile;
use tollgate_policy::{Problems, warnings};

use super::{INVALID, limits, source, unusable};

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

    /// Print JSON: an object {"file", "rules" (their number, null if the file can't be read as a
    /// policy), "errors", "warnings", "problems": [{"file", "line", "column", "severity", "field",
    /// "value", "message"}]}
    #[arg(long)]
    json: bool,
}

/// What the program that uses the policy registers.
#[derive(Debug, Args)]
pub(super) struct Registered {
    /// An algorithm that the program registers; can be given several times
    #[arg(long = "algorithm", value_name = "NAME")]
    pub(super) algorithms: Vec<String>,

    /// A store that the program registers; can be given several times. memory and redis are known
    #[arg(long = "store", value_name = "NAME")]
    pub(super) stores: Vec<String>,

    /// A fact that the program computes: a resolver of keys or a lookup of plans; can be given
    /// several times
    #[arg(long = "fact", value_name = "NAME")]
    pub(super) facts: Vec<String>,
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
    let read = match source::read(&arguments.file) {
        Ok(read) => read,
        Err(message) => return Ok(unusable(&message)),
    };
    let name = arguments.file.display().to_string();
    let rules = read.as_ref().ok().map(|file| file.rules.len());
    let problems = match read {
        Ok(file) => problems(&file, &arguments.registered).with_file(&name),
        Err(problems) => problems,
    };
    let mut out = io::stdout().lock();
    if arguments.json {
        let report = Report {
            file: &name,
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
        writeln!(out, "{name}: {}", summary(&problems, rules))?;
    }
    out.flush()?;
    Ok(match problems.has_errors() {
        true => ExitCode::from(INVALID),
        false => ExitCode::SUCCESS,
    })
}

fn problems(file: &PolicyFile, registered: &Registered) -> Problems {
    let mut problems = limits::errors(file, registered);
    problems.append(warnings(file));
    problems
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
