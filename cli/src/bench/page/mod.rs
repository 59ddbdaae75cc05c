//! The page: one file with its pictures and style sheet inside, and without scripts.
//!
//! | file | what |
//! |---|---|
//! | `throughput`, `latency` | what is shown |
//! | `view` | which contestants are shown together |
//! | `verdict` | who wins, by how much and why |
//! | `figure` | one picture |
//! | `html` | tables |
//! | `style` | colors that are readable on light and on dark |

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
use html::table;
use tollgate_page::{Html, SHEET, document, escaped};
use view::Part;

/// The page's file name in the requested folder.
const NAME: &str = "index.html";

/// The explanation of a star.
const STARRED: &str = " * These threads do not have a core each.";

/// A page that can be written. Its file keeps its old content until it is written.
pub(crate) struct Page {
    path: PathBuf,
    file: File,
}

/// The contents of the page.
pub(crate) struct Findings<'a> {
    pub(crate) threads: &'a [usize],
    pub(crate) cores: Cores,
    /// Further lines about the machine.
    pub(crate) machine: &'a [String],
    /// The contention without a limiter, a line for each number of threads.
    pub(crate) contention: String,
    pub(crate) rows: &'a [Row<'a>],
    pub(crate) latencies: &'a [Latency<'a>],
}

impl Page {
    /// Creates the folder, and checks that the page can be written.
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

    /// Replaces the content of the page, and returns its path.
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
    /// Returns whether this many threads do not have a core each.
    fn is_crowded(&self, threads: usize) -> bool {
        let mut rows = self.rows.iter();
        rows.any(|row| row.threads == threads && row.crowded)
    }

    /// Returns the number of threads, with a star if they do not have a core each.
    fn starred(&self, threads: usize) -> String {
        format!(
            "{threads}{}",
            if self.is_crowded(threads) { "*" } else { "" }
        )
    }

    fn html(&self) -> Result<String, Box<dyn Error>> {
        let mut html = String::new();
        let [machine, versions] = machine::lines(self.cores);
        writeln!(
            html,
            "<h1>What a decision costs</h1>\n<p>{}<br/>{}</p>",
            escaped(&machine),
            escaped(&versions),
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
        let title = format!("What a decision costs: {machine}");
        let mut head = Html::new();
        head.style(SHEET).style(&style::sheet());
        Ok(document(&title, &head, &Html::trusted(html)))
    }

    /// Writes what the other limiters can't do, or how to include them.
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
        let head = ["limiter", "clock", "what it can't do"].map(str::to_owned);
        html.push_str(&table("What the other limiters can't do", &head, &rows));
        if !cfg!(feature = "peers") {
            html.push_str(HINT);
        }
    }

    /// Writes how the machine itself scales without a limiter.
    fn write_contention(&self, html: &mut String) -> Result<(), Box<dyn Error>> {
        if !self.contention.is_empty() {
            html.push_str("<h2>The machine's own contention</h2>\n");
            html.push_str(
                "<p>The time of a clock reading and one compare-and-swap, without a limiter: on one ",
            );
            html.push_str(
                "word that all threads share, and on a private word for each thread.</p>\n",
            );
            let lines: Vec<_> = self.contention.lines().collect();
            list(html, "note", &lines)?;
        }
        Ok(())
    }
}

/// Writes a list of this class.
fn list(html: &mut String, class: &str, lines: &[impl AsRef<str>]) -> Result<(), Box<dyn Error>> {
    writeln!(html, "<ul class=\"{class}\">")?;
    for line in lines {
        writeln!(html, "<li>{}</li>", escaped(line.as_ref()))?;
    }
    html.push_str("</ul>\n");
    Ok(())
}

/// Describes a picture for screen readers.
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
<p>To show other crates and common hand-written limiters beside these, run \
<code>cargo run --release -p tollgate-cli --features peers -- bench --report DIR</code>.</p>
";

const METHOD: &str = "\
<h2>What was measured</h2>
<dl>
<dt>floor</dt>
<dd>The least that a decision on a shared word can cost: a raw counter reading and one \
compare-and-swap of the word (denied: one load).</dd>
<dt>private words</dt>
<dd>The same on a separate word for each thread: the cost without contention.</dd>
<dt>token bucket, sharded, lease, slots, log, keyed</dt>
<dd>tollgate&apos;s limiters: one word; a word for each core; 64 permits at a time for each thread; a window of 60 \
slots; a log of 1000 times; a table with a limit for each key, whose keys every thread requests in turn.</dd>
<dt>std mutex, parking_lot</dt>
<dd>The same token bucket behind a mutex, with the same clock.</dd>
<dt>governor, ratelimit, leaky-bucket, counter window, governor keyed, locked map</dt>
<dd>If included: other crates, a count that restarts in each window, and a DashMap of mutexes. \
Each was checked first: with a burst of ten it allowed ten of twenty requests.</dd>
<dt>throughput</dt>
<dd>Decisions in a loop, on all threads at once. Short slices of all contestants take turns; the figure is the \
median of the slices. Scales are logarithmic.</dd>
<dt>latency</dt>
<dd>Single decisions, with a raw counter reading before and after each: the time that the thread waits. \
The figures include the readings, which are also shown as &quot;the timing alone&quot;; shorter times are \
not visible. The figures cover all threads and all rounds, and include interruptions by other programs.</dd>
</dl>
";
