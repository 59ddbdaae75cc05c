//! `tollgate check`: all errors and warnings of a policy.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use tollgate_http::AnswerFacts;
use tollgate_policy::file::PolicyFile;
use tollgate_policy::{FactKind, Problems};
use tollgate_redis::Keys;

use super::registered::{MEMORY, REDIS, Registered};
use super::source::{Reading, Source};
use crate::exit_code::{INVALID, unusable};

/// Check policies: find all their errors and warnings
///
/// Each line has the file, the line, the column, the field, its value, and what is allowed. The
/// exit code is 0 if there are no errors, 1 if there are errors, and 2 if a file can't be read.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The policies, in TOML, or in JSON or YAML if a name ends in .json, .yaml or .yml. - is the
    /// standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Exit with 1 if there are warnings, too
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    registered: Registered,

    /// A fact that the program computes: a resolver of keys or a lookup of plans; can be given
    /// several times
    #[arg(long = "fact", value_name = "NAME")]
    facts: Vec<String>,

    /// Print JSON: an object {"file", "rules" (their number, null if the file can't be read as a
    /// policy), "limits" (the same for limits that rules name), "stores" and "facts" (what the
    /// program has to register and supply), "errors", "warnings", "problems": [{"file", "line",
    /// "column", "severity", "field", "value", "message"}]}. Of several files, an array of such
    /// objects
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    file: String,
    rules: Option<usize>,
    limits: Option<usize>,
    #[serde(flatten)]
    program: Program,
    errors: usize,
    warnings: usize,
    problems: Problems,
}

/// What the program that uses a policy has to register and supply.
#[derive(Debug, Default, Serialize)]
struct Program {
    stores: BTreeSet<String>,
    facts: BTreeSet<String>,
    /// Whether the file names the server of the store `redis`.
    #[serde(skip)]
    has_server: bool,
}

impl Program {
    fn of(file: &PolicyFile) -> Self {
        let stores = file.rules.iter().map(|rule| rule.store.value.clone());
        let facts = file.fact_names();
        let own = facts.iter().filter_map(|name| match name.kind() {
            FactKind::Other(own) if !AnswerFacts::NAMES.contains(&own) => Some(own.to_owned()),
            _ => None,
        });
        Self {
            stores: stores.filter(|store| store != MEMORY).collect(),
            facts: own.collect(),
            has_server: file.store.is_some(),
        }
    }

    /// Returns a line that says it, if there is anything.
    fn text(&self) -> Option<String> {
        let list = |what: &str, names: &BTreeSet<String>| {
            let plural = if names.len() > 1 { "s" } else { "" };
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("{what}{plural} {}", names.join(", "))
        };
        let stores = (!self.stores.is_empty()).then(|| list("register the store", &self.stores));
        let on_server = self.has_server && self.stores.contains(REDIS);
        let stores = stores.map(|stores| match on_server {
            true => stores + " (the server of `redis` is in [store])",
            false => stores,
        });
        let facts = (!self.facts.is_empty()).then(|| list("supply the fact", &self.facts));
        let needs: Vec<_> = stores.into_iter().chain(facts).collect();
        (!needs.is_empty()).then(|| format!("the program has to {}", needs.join(" and ")))
    }
}

/// Prints the problems of policies.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let mut out = io::stdout().lock();
    let (mut reports, mut unread) = (Vec::new(), None);
    for file in &arguments.files {
        match arguments.reading.open(file) {
            Ok(source) => reports.push(report(source, arguments)?),
            Err(message) => unread = Some(unusable(&message)),
        }
    }
    match &*reports {
        [] => {}
        [report] if arguments.json && arguments.files.len() == 1 => {
            serde_json::to_writer_pretty(&mut out, report)?;
            writeln!(out)?;
        }
        reports if arguments.json => {
            serde_json::to_writer_pretty(&mut out, reports)?;
            writeln!(out)?;
        }
        reports => reports
            .iter()
            .try_for_each(|report| report.write(&mut out))?,
    }
    out.flush()?;
    let warns = |report: &Report| arguments.strict && report.warnings > 0;
    let is_valid = !reports.iter().any(|it| it.errors > 0 || warns(it));
    Ok(match unread {
        Some(code) => code,
        None if is_valid => ExitCode::SUCCESS,
        None => ExitCode::from(INVALID),
    })
}

fn report(source: Source, arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let file = source.read().ok();
    let facts = arguments.facts.iter().map(String::as_str);
    let keys = Keys::new("check")?;
    let problems = source.check(arguments.registered.builder(keys, facts));
    let count = |is_limit| {
        let rules = file.as_ref()?.rules.iter();
        Some(rules.filter(|rule| rule.is_limit == is_limit).count())
    };
    Ok(Report {
        file: source.name,
        rules: count(false),
        limits: count(true),
        program: file.as_ref().map(Program::of).unwrap_or_default(),
        errors: problems.errors(),
        warnings: problems.warnings(),
        problems,
    })
}

impl Report {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        if !self.problems.is_empty() {
            writeln!(out, "{}", self.problems)?;
        }
        writeln!(
            out,
            "{}: {}",
            self.file,
            summary(&self.problems, self.rules, self.limits)
        )?;
        if let Some(program) = self.program.text() {
            writeln!(out, "{}: {program}", self.file)?;
        }
        Ok(())
    }
}

/// Returns the last line, such as `2 errors, 1 warning`.
fn summary(problems: &Problems, rules: Option<usize>, limits: Option<usize>) -> String {
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
    let limits = count(limits.unwrap_or_default(), "limit");
    let limits = limits.map_or_else(String::new, |limits| format!(" and {limits}"));
    format!(
        "{rules}{limits}, {}",
        warnings.unwrap_or("no problems".into())
    )
}
