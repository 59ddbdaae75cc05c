//! Parses algorithms from text: `gcra 100/s burst 20`.

use core::error::Error;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use super::AnyAlgorithm;
use crate::algorithm::alignment::{Alignment, Epoch};
use crate::algorithm::{
    FixedWindow, Gcra, Intervals, LeakyBucket, Rounding, SlidingWindow, TokenBucket,
};
use crate::quota::{ParseQuotaError, Quota, QuotaError, Reader, Why};

/// The error of parsing an [`AnyAlgorithm`] from text.
///
/// ```
/// use tollgate::error::ParseAlgorithmError;
/// use tollgate::AnyAlgorithm;
///
/// let text = "fixed-window 100/min burts 5";
/// match text.parse::<AnyAlgorithm>() {
///     Err(ParseAlgorithmError::Text(error)) => assert_eq!(&text[error.span()], "burts"),
///     other => panic!("{other:?}"),
/// }
/// let error = "gcra 0/s".parse::<AnyAlgorithm>().unwrap_err();
/// assert_eq!(error.to_string(), "n is 0, but must be at least 1 permit");
/// ```
///
/// `Debug` prints the same as `Display`, for a `main` that returns this error.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParseAlgorithmError {
    /// The text can't be parsed. The inner error says where and why.
    Text(ParseQuotaError),
    /// The text was parsed, but its quota can't be represented.
    Quota(QuotaError),
}

impl fmt::Display for ParseAlgorithmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(error) => fmt::Display::fmt(error, f),
            Self::Quota(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl fmt::Debug for ParseAlgorithmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for ParseAlgorithmError {}

impl From<ParseQuotaError> for ParseAlgorithmError {
    fn from(error: ParseQuotaError) -> Self {
        Self::Text(error)
    }
}

impl From<QuotaError> for ParseAlgorithmError {
    fn from(error: QuotaError) -> Self {
        Self::Quota(error)
    }
}

/// The options that may follow the quota, each at most once.
#[derive(Default)]
struct Options {
    tolerance: Option<Duration>,
    free: Option<u64>,
    epoch: Option<Epoch>,
    offset: Option<Duration>,
    rounding: Option<Rounding>,
    /// `first-hit` or `greedy`.
    by_first: Option<()>,
}

#[cfg(feature = "std")]
const ALIGNED: [&str; 3] = ["utc", "origin", "offset"];
#[cfg(not(feature = "std"))]
const ALIGNED: [&str; 2] = ["origin", "offset"];

/// The options that an algorithm allows after the quota: its own, whether the alignment options are
/// allowed too, and how an error message lists them all.
type Known = (&'static [&'static str], bool, &'static str);

fn known(algorithm: &str) -> Option<Known> {
    Some(match algorithm {
        "token-bucket" | "leaky-meter" => (&[], false, ""),
        "gcra" => (&["tolerance"], false, "`tolerance 25ms`"),
        "leaky-queue" => (&["free"], false, "`free 3`"),
        "fixed-window" => (
            &["first-hit"],
            true,
            "`utc`, `origin 5s`, `offset 2h` and `first-hit`",
        ),
        "sliding-window" => (
            &["rounding"],
            true,
            "`utc`, `origin 5s`, `offset 2h` and `rounding down`",
        ),
        "intervals" => (
            &["greedy"],
            true,
            "`utc`, `origin 5s`, `offset 2h` and `greedy`",
        ),
        _ => return None,
    })
}

/// Sets an option, and returns whether it was unset.
fn once<T>(option: &mut Option<T>, value: T) -> bool {
    option.replace(value).is_none()
}

impl Options {
    fn read(reader: &mut Reader<'_>, known: Known, quota: Quota) -> Result<Self, ParseQuotaError> {
        let (own, aligned, names) = known;
        let mut options = Self::default();
        while !reader.is_at_end() {
            let (start, word) = reader.word();
            let is_known = own.contains(&word) || (aligned && ALIGNED.contains(&word));
            if !is_known {
                return Err(reader.unexpected_at(start, Why::UnknownOption(names)));
            }
            if let ("utc", Some(Epoch::Unix(_))) | ("origin", Some(Epoch::Utc(_))) =
                (word, options.epoch)
            {
                let other = if word == "utc" { "origin" } else { "utc" };
                return Err(reader.error(Why::NotWith(other), start, word));
            }
            let is_first = match word {
                "tolerance" if !quota.is_plain() => {
                    return Err(reader.error(Why::NotWith("burst` or `initial"), start, word));
                }
                "tolerance" => once(&mut options.tolerance, reader.period("tolerance")?),
                "free" => once(&mut options.free, reader.number("free")?),
                "offset" => once(&mut options.offset, reader.period("offset")?),
                "origin" => once(&mut options.epoch, Epoch::Unix(reader.period("origin")?)),
                #[cfg(feature = "std")]
                "utc" => once(&mut options.epoch, Epoch::Utc(crate::clock::unix_origin())),
                "rounding" => once(&mut options.rounding, rounding(reader)?),
                _ => once(&mut options.by_first, ()),
            };
            if !is_first {
                return Err(reader.error(Why::Twice, start, word));
            }
            let is_aligned = options.epoch.is_some() || options.offset.is_some();
            if is_aligned && options.by_first.is_some() {
                let other = own.first().copied().unwrap_or_default();
                let other = if word == other { "an alignment" } else { other };
                return Err(reader.error(Why::NotWith(other), start, word));
            }
        }
        Ok(options)
    }

    fn alignment(&self) -> Alignment {
        Alignment {
            epoch: self.epoch.unwrap_or(Epoch::Clock),
            offset: self.offset.unwrap_or(Duration::ZERO),
        }
    }
}

fn rounding(reader: &mut Reader<'_>) -> Result<Rounding, ParseQuotaError> {
    match reader.word() {
        (_, "down") => Ok(Rounding::Down),
        (_, "exact") => Ok(Rounding::Exact),
        (start, _) => Err(reader.unexpected_at(start, Why::UnknownChoice("`down` or `exact`"))),
    }
}

impl FromStr for AnyAlgorithm {
    type Err = ParseAlgorithmError;

    fn from_str(text: &str) -> Result<Self, ParseAlgorithmError> {
        let mut reader = Reader::new(text);
        let (start, name) = match reader.is_at_digit() {
            true => (0, "token-bucket"),
            false => reader.word(),
        };
        let Some(known) = known(name) else {
            return Err(reader.unexpected_at(start, Why::UnknownAlgorithm).into());
        };
        let quota = reader.quota()?;
        let options = Options::read(&mut reader, known, quota)?;
        Ok(match name {
            "token-bucket" => TokenBucket::new(quota)?.into(),
            "leaky-meter" => LeakyBucket::meter(quota)?.into(),
            "leaky-queue" => {
                let queue = LeakyBucket::queue(quota)?;
                queue.free(options.free.unwrap_or(0)).into()
            }
            "fixed-window" => match options.by_first {
                Some(()) => FixedWindow::first_hit(quota)?.into(),
                None => FixedWindow::new(quota)?.aligned(options.alignment()).into(),
            },
            "sliding-window" => SlidingWindow::new(quota)?
                .rounding(options.rounding.unwrap_or_default())
                .aligned(options.alignment())
                .into(),
            "intervals" => match options.by_first {
                Some(()) => Intervals::greedily(quota)?.into(),
                None => Intervals::new(quota)?.aligned(options.alignment()).into(),
            },
            _ => gcra(quota, options.tolerance)?.into(),
        })
    }
}

/// Creates a GCRA. With a tolerance, only the interval is taken from the quota.
fn gcra(quota: Quota, tolerance: Option<Duration>) -> Result<Gcra, QuotaError> {
    let Some(tolerance) = tolerance else {
        return Gcra::new(quota);
    };
    let (n, period) = (quota.permits(), quota.period());
    let nanos = quota.valid_period_ns()?;
    match nanos.checked_rem(n) {
        Some(0) => Gcra::from_interval(Duration::from_nanos(nanos / n), tolerance),
        _ => Err(QuotaError::IntervalNotWhole { n, period }),
    }
}

#[cfg(feature = "serde")]
crate::quota::serde_as_text!(AnyAlgorithm, "an algorithm such as \"gcra 100/s burst 20\"");
