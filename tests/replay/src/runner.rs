//! Replays recorded calls, compares every answer, and accepts no difference without a class.
//!
//! A difference without a class, or in a direction that its class does not allow, is a failure. So
//! are an unreadable line, a result that was not compared, and a trace with more or fewer ops than
//! its header says.

use std::fs;
use std::io;
use std::path::Path;

use crate::comparison::{Class, Comparison, Direction};
use crate::format::{Header, Line, Malformed, Op, is_trace_file, read_text};
use crate::report::{Difference, Failure, FileReport, Report};

/// One kind of recorded limiter.
pub trait Source {
    /// Returns whether the trace is from this source.
    fn knows(&self, header: &Header) -> bool;

    /// Returns our limiter, fresh, configured as the header says. [`Malformed`] if there is no such
    /// limiter.
    fn begin(&self, header: &Header) -> Result<Box<dyn Replay>, Malformed>;
}

/// One trace replayed on our limiter.
pub trait Replay {
    /// Makes the recorded call and pairs each recorded result with our answer. [`Malformed`] if
    /// there is no such call.
    fn call(&mut self, op: &Op) -> Result<Comparison, Malformed>;

    /// Returns the class of a field's difference, if it is an accepted one. The condition may use
    /// only the trace and the answers, and must be narrow enough to hide nothing else.
    fn class(&self, op: &Op, comparison: &Comparison, field: &str) -> Option<&'static Class> {
        let _ = (op, comparison, field);
        None
    }

    /// After an accepted difference, adopts the state that the trace prints. Returns false if it
    /// prints none or none is needed. [`Malformed`] if the state is impossible.
    fn take_over(&mut self, op: &Op) -> Result<bool, Malformed> {
        let _ = op;
        Ok(false)
    }
}

/// Runs every trace file in a folder, without its subfolders, in the order of their names. A folder
/// that can't be read or has no trace file is an error.
pub fn run_folder(folder: &Path, sources: &[&dyn Source]) -> io::Result<Report> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| is_trace_file(name));
    if names.is_empty() {
        let message = format!("no .jsonl and no .jsonl.gz in {}", folder.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    names.sort();
    let files = names.into_iter().map(|name| {
        // A file that can't be read does not stop the run.
        read_text(&folder.join(&name)).map_or_else(
            |error| {
                let mut run = Run::new(&name, &[]);
                run.fail(format!("can't be read: {error}"));
                run.report
            },
            |text| run_text(&name, &text, sources),
        )
    });
    let files = files.collect();
    Ok(Report { files })
}

/// Runs the traces in the text of one file.
#[must_use]
pub fn run_text(file: &str, text: &str, sources: &[&dyn Source]) -> FileReport {
    let mut run = Run::new(file, sources);
    for (index, text) in text.lines().enumerate() {
        run.line(index + 1, text);
    }
    run.end_trace();
    if run.report.traces == 0 && run.report.failures.is_empty() {
        run.fail("no trace in the file");
    }
    run.report
}

struct Run<'a> {
    sources: &'a [&'a dyn Source],
    report: FileReport,
    trace: Option<Trace>,
}

struct Trace {
    name: String,
    declared_ops: u64,
    ops: u64,
    /// `None` for a trace of an unknown source.
    replay: Option<Box<dyn Replay>>,
    /// After a failure the two limiters may be in different states, so the rest of the trace means
    /// nothing.
    failed: bool,
}

impl<'a> Run<'a> {
    fn new(file: &str, sources: &'a [&'a dyn Source]) -> Self {
        Self {
            sources,
            report: FileReport {
                file: file.to_owned(),
                ..FileReport::default()
            },
            trace: None,
        }
    }

    fn line(&mut self, number: usize, text: &str) {
        match Line::parse(text) {
            Ok(Line::Header(header)) => self.begin_trace(number, &header),
            Ok(Line::Op(op)) => self.op(&op),
            Err(malformed) => {
                // The line was meant to be an op, so the failure has the op's number.
                if let Some(trace) = &mut self.trace {
                    trace.ops += 1;
                }
                self.fail(format!("line {number} is malformed: {malformed}"));
            }
        }
    }

    fn begin_trace(&mut self, line: usize, header: &Header) {
        self.end_trace();
        self.report.traces += 1;
        let source = self.sources.iter().find(|source| source.knows(header));
        let begun = source.map(|source| source.begin(header)).transpose();
        let error = begun.as_ref().err().map(ToString::to_string);
        if source.is_none() {
            let name = format!("{} ({})", header.source, header.algorithm);
            *self.report.not_covered.entry(name).or_default() += 1;
        }
        self.trace = Some(Trace {
            name: header.trace.clone(),
            declared_ops: header.ops,
            ops: 0,
            replay: begun.unwrap_or_default(),
            failed: false,
        });
        if let Some(error) = error {
            self.fail(format!("line {line}, the header: {error}"));
        }
    }

    fn end_trace(&mut self) {
        let Some(trace) = &self.trace else { return };
        // After a failure this would only repeat it.
        if !trace.failed && trace.ops != trace.declared_ops {
            let (found, declared) = (trace.ops, trace.declared_ops);
            self.fail(format!("{found} ops, but its header says {declared}"));
        }
        self.trace = None;
    }

    fn op(&mut self, op: &Op) {
        let Some(trace) = &mut self.trace else {
            return self.fail("an op before the first header");
        };
        trace.ops += 1;
        let Some(replay) = trace.replay.as_mut().filter(|_| !trace.failed) else {
            return;
        };
        self.report.ops += 1;
        match compare(replay.as_mut(), op, &mut self.report) {
            Ok((classes, direction)) => {
                let differences = classes.into_iter().map(|class| Difference {
                    trace: trace.name.clone(),
                    op: trace.ops,
                    class: class.name,
                    direction,
                });
                self.report.differences.extend(differences);
            }
            Err(what) => self.fail(what),
        }
    }

    fn fail(&mut self, what: impl Into<String>) {
        let (trace, op) = match &mut self.trace {
            Some(trace) => {
                trace.failed = true;
                (trace.name.clone(), trace.ops)
            }
            None => (String::new(), 0),
        };
        self.report.failures.push(Failure {
            file: self.report.file.clone(),
            trace,
            op,
            what: what.into(),
        });
    }
}

/// Makes one call and judges the answer: the classes of its differences, and their direction.
fn compare(
    replay: &mut dyn Replay,
    op: &Op,
    report: &mut FileReport,
) -> Result<(Vec<&'static Class>, Direction), String> {
    let malformed = |malformed| format!("malformed: {malformed}");
    let comparison = replay.call(op).map_err(malformed)?;
    let unread: Vec<_> = op.result.unread().chain(op.args.unread()).collect();
    if !unread.is_empty() {
        return Err(format!("recorded, but not compared: {unread:?}"));
    }
    report.fields += comparison.count();
    let direction = comparison.direction();
    let mut classes: Vec<&'static Class> = Vec::new();
    for pair in comparison.differing() {
        let class = replay.class(op, &comparison, pair.field);
        match class.filter(|class| class.directions.contains(&direction)) {
            Some(class) if classes.contains(&class) => {}
            Some(class) => classes.push(class),
            None => {
                let (field, asked) = (pair.field, op.asked());
                return Err(format!("`{field}` differs: {asked}: {comparison}"));
            }
        }
    }
    if !classes.is_empty() && replay.take_over(op).map_err(malformed)? {
        report.taken_over += 1;
    }
    Ok((classes, direction))
}
