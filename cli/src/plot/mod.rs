//! `tollgate plot`: pictures of what each algorithm admits over time.
//!
//! | file | what |
//! |---|---|
//! | `subjects` | the algorithms |
//! | `loads` | the requests |
//! | `record` | the answers, on a manual clock |
//! | `figures` | the counts behind the pictures |
//! | `picture` | the picture of one algorithm: three loads side by side |
//! | `panel` | one load: the requests above, the running count below |
//! | `style` | colors that are readable on light and dark |

mod figures;
mod loads;
mod panel;
mod picture;
mod record;
mod style;
mod subjects;

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use record::Recorded;
use subjects::Subject;

/// Draw what each algorithm admits over time, under the same three loads.
///
/// The library's own algorithms make the decisions, on a manual clock. Every run draws the same
/// pictures, byte for byte.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Write the pictures to this folder, which is created if needed; `-` prints the picture of one
    /// --algorithm
    #[arg(long, value_name = "FOLDER", default_value = "docs/pictures")]
    out: PathBuf,

    /// Draw only this algorithm; can be given several times [default: all]
    #[arg(long = "algorithm", value_name = "NAME", value_parser = subjects::NAMES)]
    algorithms: Vec<String>,

    /// Print JSON instead of drawing: each algorithm's requests, and when each admitted one leaves
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn subjects(&self) -> impl Iterator<Item = &'static Subject> {
        let wanted = |name| self.algorithms.is_empty() || self.algorithms.iter().any(|n| n == name);
        subjects::ALL.iter().filter(move |one| wanted(one.name))
    }
}

/// Draws the pictures, or prints their figures.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let recorded: Vec<_> = arguments
        .subjects()
        .map(Recorded::of)
        .collect::<Result<_, _>>()?;
    let mut out = io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &recorded)?;
        writeln!(out)?;
    } else if arguments.out == Path::new("-") {
        let [one] = &*recorded else {
            return Err("--out -: name one --algorithm, whose picture is printed".into());
        };
        write!(out, "{}", picture::draw(one)?)?;
    } else {
        let failed = |path: &Path, error: io::Error| {
            format!("--out: {} can't be written: {error}", path.display())
        };
        fs::create_dir_all(&arguments.out).map_err(|error| failed(&arguments.out, error))?;
        for one in &recorded {
            let path = arguments.out.join(format!("{}.svg", one.name));
            fs::write(&path, picture::draw(one)?).map_err(|error| failed(&path, error))?;
            writeln!(out, "{}", path.display())?;
        }
    }
    out.flush()?;
    Ok(())
}
