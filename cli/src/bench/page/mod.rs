//! The page: one file, with its pictures and its style inside, and no scripts.
//!
//! | file | what |
//! |---|---|
//! | `throughput`, `latency` | what is shown |
//! | `view` | which contestants are shown together |
//! | `verdict` | who wins, by how much and why |
//! | `figure` | one picture |
//! | `html` | text and tables |
//! | `style` | colours that are readable on light and on dark |

mod figure;
mod html;
mod latency;
mod style;
mod throughput;
mod verdict;
mod view;

use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use super::about::cannot;
use super::contestants::Source;
use super::latency::Latency;
use super::machine;
use super::rows::Row;
use super::topology::Cores;
use html::{escaped, table};
use view::Part;

/// The name of the page in the folder that was asked for.
const NAME: &str = "index.html";

/// What a star says.
const STARRED: &str = " * These threads do not have a core each.";

/// A page that can be written. What it held is left until then.
pub(crate) struct Page {
    path: PathBuf,
    file: File,
}

/// What the page tells.
pub(crate) struct Findings<'a> {
    pub(crate) threads: &'a [usize],
    pub(crate) cores: Cores,
    /// Further lines about the machine.
    pub(crate) machine: &'a [String],
    /// What the machine itself makes of several threads, a line each.
    pub(crate) contention: String,
    pub(crate) rows: &'a [Row<'a>],
    pub(crate) latencies: &'a [Latency<'a>],
}

impl Page {
    /// Makes the folder, and sees that the page can be written.
    pub(crate) fn create(folder: &Path) -> Result<Self, Box<dyn Error>> {
        let failed = |path: &Path, error: io::Error| {
            format!("--report: {} can't be written: {error}", path.display())
        };
        fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        let path = folder.join(NAME);
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|error| failed(&path, error))?;
        Ok(Self { path, file })
    }

    /// Puts this in the place of what the page held. Returns where it is.
    pub(crate) fn write(mut self, findings: &Findings<'_>) -> Result<PathBuf, Box<dyn Error>> {
        let html = findings.html()?;
        let mut write = || {
            self.file.set_len(0)?;
            self.file.rewind()?;
            self.file.write_all(html.as_bytes())
        };
        write().map_err(|error| {
            format!(
                "--report: {} can't be written: {error}",
                self.path.display()
            )
        })?;
        Ok(self.path)
    }
}

impl Findings<'_> {
    /// Whether so many threads don't have a core each.
    fn is_crowded(&self, threads: usize) -> bool {
        let mut rows = self.rows.iter();
        rows.any(|row| row.threads == threads && row.crowded)
    }

    /// The number, and a star if they don't have a core each.
    fn starred(&self, threads: usize) -> String {
        format!(
            "{threads}{}",
            if self.is_crowded(threads) { "*" } else { "" }
        )
    }

    fn html(&self) -> Result<String, Box<dyn Error>> {
        let mut html = String::new();
        let [machine, versions] = machine::lines(self.cores).map(|line| escaped(&line));
        write!(
            html,
            "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n\
             <meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <title>What a decision costs: {machine}</title>\n<style>\n{}</style>\n</head>\n\
             <body>\n<main>\n<h1>What a decision costs</h1>\n<p>{machine}<br/>{versions}</p>\n",
            style::sheet(),
        )?;
        if !self.machine.is_empty() {
            html += "<h2>The machine</h2>\n";
            list(&mut html, "note", self.machine)?;
        }
        self.write_contention(&mut html)?;
        throughput::write(&mut html, self)?;
        if !self.latencies.is_empty() {
            latency::write(&mut html, self)?;
        }
        self.write_limits(&mut html);
        html += METHOD;
        html += "</main>\n</body>\n</html>\n";
        Ok(html)
    }

    /// What the others can't do; or how to see them.
    fn write_limits(&self, html: &mut String) {
        let first = self.rows.first().map(|row| row.threads);
        let entries = self.rows.iter().filter(|row| Some(row.threads) == first);
        let entries = entries.map(|row| &row.contest.entry);
        let mut rows: Vec<Vec<String>> = Vec::new();
        for entry in entries {
            let Some(what) = cannot(entry.subject) else {
                continue;
            };
            let is_listed = rows.iter().any(|row| row[0] == entry.subject);
            if !is_listed {
                let clock = match entry.source {
                    Source::Own(clock) => clock,
                    _ => "any",
                };
                rows.push([entry.subject, clock, what].map(str::to_owned).into());
            }
        }
        html.push_str("<h2>What the other limiters can&apos;t do</h2>\n");
        let head = ["", "clock", "what it can't do"].map(str::to_owned);
        html.push_str(&table("What the other limiters can't do", &head, &rows));
        if !cfg!(feature = "peers") {
            html.push_str(HINT);
        }
    }

    /// What the machine itself makes of several threads.
    fn write_contention(&self, html: &mut String) -> Result<(), Box<dyn Error>> {
        if !self.contention.is_empty() {
            html.push_str("<h2>The machine's own contention</h2>\n");
            html.push_str(
                "<p>No limiter: a reading of the clock and one exchange, on one word for all ",
            );
            html.push_str("threads, and on words of their own.</p>\n");
            let lines: Vec<_> = self.contention.lines().collect();
            list(html, "note", &lines)?;
        }
        Ok(())
    }
}

/// Lines of this class.
fn list(html: &mut String, class: &str, lines: &[impl AsRef<str>]) -> Result<(), Box<dyn Error>> {
    writeln!(html, "<ul class=\"{class}\">")?;
    for line in lines {
        writeln!(html, "<li>{}</li>", escaped(line.as_ref()))?;
    }
    html.push_str("</ul>\n");
    Ok(())
}

/// What a picture shows, for those who can't see it.
fn described(parts: &[&Part], places: &str) -> String {
    let panels: Vec<_> = parts.iter().map(|part| part.title).collect();
    let plural = if panels.len() == 1 { "" } else { "s" };
    format!(
        "{} panel{plural}: {}; a line for each contestant, {places}. The table below has all \
         figures.",
        panels.len(),
        panels.join("; "),
    )
}

const HINT: &str = "\
<p>Other crates and what people write themselves are shown beside these by \
<code>cargo run --release -p tollgate-cli --features peers -- bench --report DIR</code>.</p>
";

const METHOD: &str = "\
<h2>What was measured</h2>
<dl>
<dt>floor</dt>
<dd>The least that a decision on a shared word can cost: a raw reading of the counter and one exchange of \
the word (denied: one load).</dd>
<dt>private words</dt>
<dd>The same, on a word for each thread: what is left without contention.</dd>
<dt>token bucket, sharded, lease, slots, log, keyed</dt>
<dd>tollgate&apos;s: one word; a word for each core; 64 permits at a time drawn by each thread; a window of 60 \
slots; a log of 1000 times; a table with a limit for each of many keys, over which every thread walks.</dd>
<dt>std mutex, parking_lot</dt>
<dd>The same token bucket behind a mutex, with the same clock.</dd>
<dt>governor, ratelimit, leaky-bucket, counter window, governor keyed, locked map</dt>
<dd>Where they are shown: other crates, a count that starts again in each window, and a DashMap of mutexes. \
Each was first asked for twenty permits of a burst of ten, and allowed ten.</dd>
<dt>throughput</dt>
<dd>Decisions in a loop, on all threads at once, in short slices in which all contestants take turns; the \
median of the slices. Scales are logarithmic.</dd>
<dt>latency</dt>
<dd>Single decisions, with a reading of the raw counter before and after each: what the thread waits for. \
The readings themselves are in the figures, and shown as &quot;the timing alone&quot;: nothing below that can \
be seen. Counts of all threads together, and of all rounds. What the system gives to others while a decision \
is made is in the figures too.</dd>
</dl>
";
