//! `tollgate bench`: what a decision costs on this machine.
//!
//! | file | what |
//! |---|---|
//! | `arguments` | what can be asked for |
//! | `contestants` | what is measured: shared with the criterion benches |
//! | `measure` | rounds in which all contestants take turns, and their medians |
//! | `report` | the figures, as rows of JSON and as tables |
//! | `machine` | where they come from |

mod arguments;
#[path = "../../../benches/contestants/mod.rs"]
mod contestants;
mod machine;
mod measure;
mod report;

use std::error::Error;
use std::io::{self, Write};

pub(crate) use arguments::Arguments;

/// Measures, and prints the figures.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let upkeep = contestants::bucket::keep_coarse()?;
    let measured = measure::measure(&arguments.threads(), arguments.total())?;
    drop(upkeep);
    let rows = report::rows(&measured);
    let mut out = io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &rows)?;
        writeln!(out)?;
    } else {
        writeln!(out, "{}", machine::headline())?;
        write!(out, "{}", report::tables(&measured, &rows))?;
    }
    out.flush()?;
    Ok(())
}
