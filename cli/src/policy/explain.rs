//! `tollgate explain`: which rules apply to a request, and why the others do not.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use comfy_table::{ContentArrangement, Table};
use console::Term;
use tollgate_policy::explain::{Explained, Explanation};
use tollgate_redis::Keys;

use super::registered::Registered;
use super::request::{Request, unread};
use super::source::Reading;
use crate::exit_code::{INVALID, unusable};
use crate::table;

/// Explain what a policy does with a request: which rules apply, and why the others do not
///
/// The command knows the policy and the request, but not how much of each limit is left. The exit
/// code is 0, whether or not the request is denied; 1 if the policy has errors, as tollgate check
/// finds them; and 2 if the file can't be read, or does not read a fact that is given. The request
/// is read as the layer of tollgate-tower reads it.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The policy, in TOML, or in JSON or YAML if its name ends in .json, .yaml or .yml
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    request: Request,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    registered: Registered,

    /// Print JSON: an object {"summary", "entry" ({"list", "name", "status"} if an entry of deny or
    /// allow decides), "rules": [{"name", "applies" ("yes", "shadow" or "no"), "why",
    /// "asks" ({"key", "limits", "plan", "override", "cost", "store", "denies", "status"} if it
    /// applies)}]}
    #[arg(long)]
    json: bool,
}

/// Prints what a policy does with a request.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let source = match arguments.reading.open(&arguments.file) {
        Ok(source) => source,
        Err(message) => return Ok(unusable(&message)),
    };
    let keys = Keys::new("explain")?;
    let builder = arguments
        .registered
        .builder(keys, arguments.request.named());
    let file = match source.read_checked(builder) {
        Ok(file) => file,
        Err(problems) => {
            eprintln!("{problems}");
            return Ok(ExitCode::from(INVALID));
        }
    };
    let explanation = match arguments.request.described().explain(&file) {
        Ok(explanation) => explanation,
        Err(unknown) => return Ok(unusable(&unread(&source.name, &unknown))),
    };
    let mut out = io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &explanation)?;
        writeln!(out)?;
    } else {
        writeln!(out, "{}", explanation.summary)?;
        if !explanation.rules.is_empty() {
            for line in table_of(&explanation).lines() {
                writeln!(out, "{}", line.trim_end())?;
            }
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a table with a row for each rule.
fn table_of(explanation: &Explanation) -> Table {
    let mut table = table::bare();
    let terminal = Term::stdout();
    if terminal.is_term() {
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(terminal.size().1);
    }
    table.set_header(Explained::COLUMNS);
    for rule in &explanation.rules {
        table.add_row(rule.cells());
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}
