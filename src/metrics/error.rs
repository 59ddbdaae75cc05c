use core::fmt;
use std::error::Error;
use std::string::String;

/// An error of [`write_prometheus`](super::write_prometheus): it wrote nothing, or only a part.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricsError {
    /// The prefix is not valid at the beginning of a metric's name.
    Prefix(String),
    /// The name of a label is not valid.
    LabelName(String),
    /// A limiter has two labels of this name.
    DuplicateLabel(String),
    /// The limiters at these positions of the list have the same labels and a metric in common.
    SameLabels(usize, usize),
    /// Writing to the output failed. A part may have been written.
    Output(fmt::Error),
}

impl fmt::Display for MetricsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => write!(
                f,
                "prefix is {prefix:?}, but must be letters, digits, `_` and `:`, \
                 and not begin with a digit"
            ),
            Self::LabelName(name) => write!(
                f,
                "label name is {name:?}, but must be letters, digits and `_`, \
                 and not begin with a digit or with `__`"
            ),
            Self::DuplicateLabel(name) => {
                write!(
                    f,
                    "label name {name:?} occurs twice, but must occur only once"
                )
            }
            Self::SameLabels(one, other) => write!(
                f,
                "labels of limiters {one} and {other} are the same, but must differ \
                 where limiters have the same metrics"
            ),
            Self::Output(error) => write!(f, "writing to the output failed: {error}"),
        }
    }
}

impl Error for MetricsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Output(error) => Some(error),
            _ => None,
        }
    }
}

impl From<fmt::Error> for MetricsError {
    fn from(error: fmt::Error) -> Self {
        Self::Output(error)
    }
}
