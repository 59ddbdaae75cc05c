//! What is wrong with a policy, and where.

use std::error::Error;
use std::fmt;

use serde::{Serialize, Serializer};

mod shown;

pub(crate) use shown::{Excerpt, quoted, short_number};
use shown::{MAX_VALUE, cut};

/// Where something is in a file. Both numbers count from 1; the column counts characters.
///
/// ```
/// use tollgate_policy::Position;
///
/// assert_eq!(Position::new(12, 9).to_string(), "12:9");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Position {
    /// Creates a position.
    #[must_use]
    pub const fn new(line: usize, column: usize) -> Self {
        Self { line, column }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Whether a policy with this problem can be used.
///
/// ```
/// assert_eq!(tollgate_policy::Severity::Error.to_string(), "error");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The policy can't be used.
    Error,
    /// The policy can be used, but probably does not do what was meant.
    Warning,
}

impl Severity {
    const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One thing that is wrong with a policy.
///
/// ```
/// use tollgate_policy::{Position, Problem};
///
/// let problem = Problem::error("rule \"login\": ban.after", "0", "must be at least 1");
/// assert_eq!(
///     problem.at(Position::new(12, 9)).to_string(),
///     "12:9: error: rule \"login\": ban.after is 0, but must be at least 1"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Problem {
    /// Whether the policy can be used.
    pub severity: Severity,
    /// Where it is, if the policy comes from a file that has positions.
    pub position: Option<Position>,
    /// The field, such as `rule "login": limit`. It is empty if the problem is not one field's.
    pub field: String,
    /// The value as it is written, or an empty text if it is missing. Long values are cut.
    pub value: String,
    /// What is wrong and what is allowed. It continues a sentence: after a value `must be at
    /// least 1`, and after a field alone `is missing`.
    pub message: String,
}

/// The most characters of a field.
const MAX_FIELD: usize = 300;
/// The most characters of a message.
const MAX_MESSAGE: usize = 2000;

impl Problem {
    /// Creates an error. `value` is what the file says, or an empty text if it says nothing.
    #[must_use]
    pub fn error(field: impl AsRef<str>, value: impl AsRef<str>, message: impl AsRef<str>) -> Self {
        Self::new(
            Severity::Error,
            field.as_ref(),
            value.as_ref(),
            message.as_ref(),
        )
    }

    /// Creates a warning. `value` is what the file says, or an empty text if it says nothing.
    #[must_use]
    pub fn warning(
        field: impl AsRef<str>,
        value: impl AsRef<str>,
        message: impl AsRef<str>,
    ) -> Self {
        Self::new(
            Severity::Warning,
            field.as_ref(),
            value.as_ref(),
            message.as_ref(),
        )
    }

    /// Says where the problem is.
    #[must_use]
    pub fn at(self, position: impl Into<Option<Position>>) -> Self {
        Self {
            position: position.into(),
            ..self
        }
    }

    fn new(severity: Severity, field: &str, value: &str, message: &str) -> Self {
        Self {
            severity,
            position: None,
            field: cut(field, MAX_FIELD),
            value: cut(value, MAX_VALUE),
            message: cut(message, MAX_MESSAGE),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = self.position {
            write!(f, "{position}: ")?;
        }
        write!(f, "{}: ", self.severity)?;
        match (self.field.as_str(), self.value.as_str()) {
            ("", "") => {}
            ("", value) => write!(f, "{value} ")?,
            (field, "") => write!(f, "{field} ")?,
            (field, value) => write!(f, "{field} is {value}, but ")?,
        }
        f.write_str(&self.message)
    }
}

impl Error for Problem {}

/// All errors and warnings of a policy, in the order of the file.
///
/// It prints one line for each. At most 1000 are kept; a last line counts the others.
///
/// ```
/// use tollgate_policy::file::PolicyFile;
///
/// let text = "[[rule]]\nname = 'login'\nkey = 'client-ip'\nlimit = 5\nban = { after = 0 }\n";
/// let problems = PolicyFile::from_toml(text).unwrap_err().with_file("limits.toml");
/// assert!(problems.has_errors());
/// assert_eq!(
///     problems.to_string(),
///     "limits.toml:4:9: error: rule \"login\": limit is 5, but must be text such as \"5/min\", or a list \
///      of such texts\n\
///      limits.toml:5:7: error: rule \"login\": ban.for is missing\n\
///      limits.toml:5:17: error: rule \"login\": ban.after is 0, but must be at least 1"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problems {
    list: Vec<Problem>,
    file: Option<String>,
    errors: usize,
    warnings: usize,
}

/// The most problems that are kept.
const MAX_PROBLEMS: usize = 1000;

impl Problems {
    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a problem, after those at the same position.
    pub fn push(&mut self, problem: Problem) {
        match problem.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
        let index = self
            .list
            .partition_point(|known| known.position <= problem.position);
        if index < MAX_PROBLEMS {
            self.list.insert(index, problem);
            self.list.truncate(MAX_PROBLEMS);
        }
    }

    /// Adds the problems of another list.
    pub fn append(&mut self, other: Self) {
        let (errors, warnings) = (self.errors + other.errors, self.warnings + other.warnings);
        for problem in other.list {
            self.push(problem);
        }
        (self.errors, self.warnings) = (errors, warnings);
        self.file = self.file.take().or(other.file);
    }

    /// Says which file the problems are in.
    #[must_use]
    pub fn with_file(self, name: impl Into<String>) -> Self {
        Self {
            file: Some(name.into()),
            ..self
        }
    }

    /// Returns the name of the file.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Returns whether there is an error, so that the policy can't be used.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Returns whether there are neither errors nor warnings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the number of errors, those that were not kept included.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Returns the number of warnings, those that were not kept included.
    #[must_use]
    pub fn warnings(&self) -> usize {
        self.warnings
    }

    /// Returns the number of problems that were not kept.
    #[must_use]
    pub fn omitted(&self) -> usize {
        (self.errors + self.warnings).saturating_sub(self.list.len())
    }

    /// Returns the problems that were kept.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.list.iter()
    }

    /// Returns a value if there is no error, and the problems otherwise.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Self> {
        match self.has_errors() {
            true => Err(self),
            false => Ok(value),
        }
    }

    /// Returns whether there is an error of a field or of a part of it, as far as they were kept.
    pub(crate) fn has_error(&self, field: &str) -> bool {
        let mut errors = self.list.iter();
        errors.any(|it| it.severity == Severity::Error && it.field.starts_with(field))
    }

    /// Puts another name at the beginning of all fields that begin with this one.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        for problem in &mut self.list {
            if let Some(field) = problem.field.strip_prefix(from) {
                problem.field = format!("{to}{field}");
            }
        }
    }

    /// Returns whether more problems would not be kept.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= MAX_PROBLEMS
    }

    /// Returns the problem that counts those that were not kept.
    fn last(&self) -> Option<Problem> {
        let omitted = self.omitted();
        let severity = match self.errors {
            0 => Severity::Warning,
            _ => Severity::Error,
        };
        let message = format!("{omitted} more problems are not shown");
        (omitted > 0).then(|| Problem::new(severity, "", "", &message))
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        let mut problems = Self::new();
        problems.push(problem);
        problems
    }
}

impl<'p> IntoIterator for &'p Problems {
    type Item = &'p Problem;
    type IntoIter = std::slice::Iter<'p, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().chain(&self.last()).enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            if let Some(file) = &self.file {
                let space = if problem.position.is_none() { " " } else { "" };
                write!(f, "{file}:{space}")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl Error for Problems {}

/// A list of objects with `file`, `line`, `column`, `severity`, `field`, `value` and `message`.
impl Serialize for Problems {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Row<'p> {
            file: Option<&'p str>,
            line: Option<usize>,
            column: Option<usize>,
            severity: &'static str,
            field: &'p str,
            value: &'p str,
            message: &'p str,
        }
        let last = self.last();
        serializer.collect_seq(self.list.iter().chain(&last).map(|problem| Row {
            file: self.file.as_deref(),
            line: problem.position.map(|position| position.line),
            column: problem.position.map(|position| position.column),
            severity: problem.severity.name(),
            field: &problem.field,
            value: &problem.value,
            message: &problem.message,
        }))
    }
}
