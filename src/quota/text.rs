//! Parses quotas from text, and formats them as text.
//!
//! ```text
//! quota      = number ( "/" | "per" ) period { "burst" number | "initial" number }
//! period     = [ digits ] unit
//! number     = digits [ multiplier ]
//! digits     = "0" to "9", with "_" between them
//! multiplier = [ "k" | "M" | "G" | "Ki" | "Mi" | "Gi" ] [ "B" ], not empty
//! unit       = one of `UNITS`
//! ```
//!
//! `burst` and `initial` are allowed once each. White space is allowed between any two parts, but
//! not inside a multiplier.

use core::error::Error;
use core::fmt::{self, Write};
use core::ops::Range;
use core::str::FromStr;
use core::time::Duration;

use super::Quota;

const SECOND: u64 = 1_000_000_000;

/// The names of each unit, and its length in nanoseconds. `Display` writes the first name.
const UNITS: [(&[&str], u64); 7] = [
    (&["d", "day", "days"], 86_400 * SECOND),
    (&["h", "hr", "hrs", "hour", "hours"], 3600 * SECOND),
    (&["min", "m", "mins", "minute", "minutes"], 60 * SECOND),
    (&["s", "sec", "secs", "second", "seconds"], SECOND),
    (&["ms", "msec", "millisecond", "milliseconds"], 1_000_000),
    (
        &["us", "µs", "μs", "usec", "microsecond", "microseconds"],
        1000,
    ),
    (&["ns", "nsec", "nanosecond", "nanoseconds"], 1),
];

/// The multipliers that may follow the digits of a number, without the `B` for bytes.
const MULTIPLES: [(&str, u64); 7] = [
    ("", 1),
    ("k", 1000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
];

/// The error of parsing a [`Quota`] from text: what is wrong, and where.
///
/// ```
/// use tollgate::Quota;
///
/// let text = "100/fortnight";
/// let error = text.parse::<Quota>().unwrap_err();
/// assert_eq!(&text[error.span()], "fortnight");
/// assert_eq!(
///     error.to_string(),
///     "at byte 4: `fortnight` is not a unit of time: write ns, us, ms, s, min, h or d"
/// );
/// ```
///
/// `Debug` prints the same as `Display`, for a `main` that returns this error.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ParseQuotaError {
    why: Why,
    start: usize,
    end: usize,
    excerpt: Excerpt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Why {
    /// There is no number for this field.
    NoNumber(&'static str),
    /// The number for this field does not fit 64 bits.
    TooLarge(&'static str),
    /// The letters after a number are not a multiplier.
    UnknownMultiple,
    NoSlash,
    NoUnit,
    UnknownUnit,
    PeriodTooLong,
    Twice,
    UnknownAlgorithm,
    /// A word is not one of these options.
    UnknownOption(&'static str),
    /// A word is not one of the values of an option.
    UnknownChoice(&'static str),
    /// An option can't be combined with this other one.
    NotWith(&'static str),
}

impl ParseQuotaError {
    /// Returns the byte range of the wrong part of the text. The range is empty if something is
    /// missing.
    pub const fn span(&self) -> Range<usize> {
        self.start..self.end
    }
}

impl fmt::Display for ParseQuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: ", self.start)?;
        if self.start == self.end {
            f.write_str("the text ends")?;
        } else {
            write!(f, "`{}`", self.excerpt)?;
        }
        f.write_str(match self.why {
            Why::UnknownAlgorithm if self.start == self.end => {
                " where an algorithm or a quota is expected, as in `gcra 100/s burst 20`"
            }
            Why::UnknownAlgorithm => {
                " is not an algorithm: write token-bucket, gcra, leaky-meter, leaky-queue, \
                 fixed-window, sliding-window or intervals, or a quota alone for token-bucket"
            }
            Why::UnknownOption("") => {
                " is not an option here; allowed after the rate: `burst 20` and `initial 5`"
            }
            Why::UnknownOption(known) => {
                return write!(
                    f,
                    " is not an option here; allowed after the quota and its burst: {known}"
                );
            }
            Why::UnknownChoice(known) => {
                return write!(f, " where {known} is expected");
            }
            Why::NotWith(other) => {
                return write!(f, " can't be combined with `{other}`");
            }
            Why::NoNumber(field) => {
                return write!(
                    f,
                    " where a number is expected for {field}, as in `100/s burst 20`"
                );
            }
            Why::TooLarge(field) => {
                return write!(
                    f,
                    " is too large for {field}: numbers go up to {}",
                    u64::MAX
                );
            }
            Why::UnknownMultiple => {
                " is not a multiplier: write k, M, G, Ki, Mi or Gi, and B if bytes are counted"
            }
            Why::NoSlash => " where a `/` or `per` is expected, as in `100/s`",
            Why::NoUnit => " where a unit of time is expected: write ns, us, ms, s, min, h or d",
            Why::UnknownUnit => " is not a unit of time: write ns, us, ms, s, min, h or d",
            Why::PeriodTooLong => " is too long: periods go up to 584 years",
            Why::Twice => " is given twice",
        })?;
        self.write_hint(f)
    }
}

impl ParseQuotaError {
    /// Says what was probably meant.
    fn write_hint(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = self.excerpt.text();
        let near = match self.why {
            Why::UnknownMultiple => {
                let part = part.strip_suffix(['b', 'B']).unwrap_or(part);
                let mut multiples = MULTIPLES.iter().map(|(name, _)| *name);
                multiples.find(|name| !part.is_empty() && name.eq_ignore_ascii_case(part))
            }
            Why::UnknownUnit => {
                let is_near = |name: &&str| name.eq_ignore_ascii_case(part);
                let mut units = UNITS.iter().map(|(names, _)| *names);
                let names = units.find(|names| names.iter().any(&is_near));
                names.and_then(|names| names.first().copied())
            }
            Why::NoSlash if is_fraction(part) => {
                return f.write_str("; numbers are whole: write 1.5/s as `3/2s`");
            }
            Why::NoUnit if is_fraction(part) => {
                return f.write_str("; numbers are whole: write 1.5s as `1500ms`");
            }
            _ => None,
        };
        if let Some(near) = near {
            return write!(f, "; did you mean `{near}`?");
        }
        let longer = [("week", "7d"), ("month", "30d"), ("year", "365d")];
        let unit = part.strip_suffix('s').unwrap_or(part);
        let mut longer = longer.iter().filter(|_| self.why == Why::UnknownUnit);
        match longer.find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
            Some((name, days)) => write!(f, "; write a {name} as `{days}`"),
            None => Ok(()),
        }
    }
}

/// Returns whether a part begins as the digits after a decimal point do.
fn is_fraction(part: &str) -> bool {
    let mut chars = part.chars();
    chars.next() == Some('.') && chars.next().is_some_and(|c| c.is_ascii_digit())
}

impl fmt::Debug for ParseQuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for ParseQuotaError {}

/// The beginning of the wrong part, stored so that the message can show it without allocating.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Excerpt {
    bytes: [u8; 24],
    len: u8,
    cut: bool,
}

impl Excerpt {
    fn of(text: &str) -> Self {
        let mut bytes = [0; 24];
        let ends = text.char_indices().map(|(start, c)| start + c.len_utf8());
        let len = ends.take_while(|end| *end <= bytes.len()).last();
        let len = len.unwrap_or(0);
        for (to, from) in bytes.iter_mut().zip(text.bytes().take(len)) {
            *to = from;
        }
        Self {
            bytes,
            len: len as u8,
            cut: len < text.len(),
        }
    }
}

impl Excerpt {
    fn text(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.len)).unwrap_or(&[]);
        core::str::from_utf8(bytes).unwrap_or("")
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.text().chars() {
            // The message may end up in a log, so it must not contain control characters.
            f.write_char(if c.is_control() { '\u{fffd}' } else { c })?;
        }
        if self.cut { f.write_str("...") } else { Ok(()) }
    }
}

/// Returns the factor that a multiplier stands for.
fn multiple(word: &str) -> Option<u64> {
    let word = word.strip_suffix('B').unwrap_or(word);
    let known = MULTIPLES.iter().find(|(name, _)| *name == word);
    known.map(|(_, multiple)| *multiple)
}

/// A reader of the parts of a text, which keeps track of their positions.
pub(crate) struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    pub(crate) const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Takes the longest prefix of the rest whose characters all satisfy `such`. Returns its
    /// position and the prefix.
    fn take(&mut self, such: impl Fn(char) -> bool) -> (usize, &'t str) {
        let (start, rest) = (self.at, self.rest());
        let len = rest.find(|c| !such(c)).unwrap_or(rest.len());
        self.at += len;
        (start, rest.get(..len).unwrap_or(""))
    }

    /// Takes the next word of letters and hyphens. Returns its position and the word, which is
    /// empty if something else comes next.
    pub(crate) fn word(&mut self) -> (usize, &'t str) {
        self.skip_space();
        self.take(|c| c.is_alphabetic() || c == '-')
    }

    /// Returns whether a number comes next.
    pub(crate) fn is_at_digit(&mut self) -> bool {
        self.skip_space();
        self.rest().starts_with(|c: char| c.is_ascii_digit())
    }

    /// Returns whether the text ends here.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.rest().is_empty()
    }

    pub(crate) fn error(&self, why: Why, start: usize, part: &str) -> ParseQuotaError {
        ParseQuotaError {
            why,
            start,
            end: start + part.len(),
            excerpt: Excerpt::of(part),
        }
    }

    /// Returns an error about the part that begins at `start` and ends at white space.
    pub(crate) fn unexpected_at(&mut self, start: usize, why: Why) -> ParseQuotaError {
        self.at = start;
        self.unexpected(why)
    }

    /// Returns an error about the next part, up to white space.
    fn unexpected(&mut self, why: Why) -> ParseQuotaError {
        let before = self.text.get(..self.at).unwrap_or("");
        let is_after_digit = before.ends_with(|c: char| c.is_ascii_digit() || c == '_');
        if is_after_digit && matches!(why, Why::NoSlash | Why::UnknownOption(_)) {
            let (start, letters) = self.take(char::is_alphabetic);
            if !letters.is_empty() {
                return self.error(Why::UnknownMultiple, start, letters);
            }
        }
        let (start, word) = self.take(|c| !c.is_whitespace());
        self.error(why, start, word)
    }

    /// Reads a number without a multiplier.
    fn digits(&mut self, field: &'static str) -> Result<u64, ParseQuotaError> {
        if !self.is_at_digit() {
            return Err(self.unexpected(Why::NoNumber(field)));
        }
        let (start, digits) = self.take(|c| c.is_ascii_digit() || c == '_');
        let mut number = 0_u64;
        for digit in digits.bytes().filter(u8::is_ascii_digit) {
            number = number
                .checked_mul(10)
                .and_then(|n| n.checked_add(u64::from(digit - b'0')))
                .ok_or_else(|| self.error(Why::TooLarge(field), start, digits))?;
        }
        Ok(number)
    }

    /// Reads a number of permits for this field: `5`, `5k`, `5MB` or `5 MiB`.
    pub(crate) fn number(&mut self, field: &'static str) -> Result<u64, ParseQuotaError> {
        self.skip_space();
        let start = self.at;
        let number = self.digits(field)?;
        let end = self.at;
        self.skip_space();
        let (_, word) = self.take(char::is_alphabetic);
        let Some(multiple) = multiple(word) else {
            // The word belongs to what comes next.
            self.at = end;
            return Ok(number);
        };
        let part = self.text.get(start..self.at).unwrap_or("");
        number
            .checked_mul(multiple)
            .ok_or_else(|| self.error(Why::TooLarge(field), start, part))
    }

    /// Reads a length of time: `5s`, or `s` for one second.
    pub(crate) fn period(&mut self, field: &'static str) -> Result<Duration, ParseQuotaError> {
        self.skip_space();
        let start = self.at;
        let count = match self.is_at_digit() {
            true => self.digits(field)?,
            false => 1,
        };
        self.skip_space();
        let (at, unit) = self.take(char::is_alphabetic);
        if unit.is_empty() {
            return Err(self.unexpected(Why::NoUnit));
        }
        let Some((_, nanos)) = UNITS.iter().find(|(names, _)| names.contains(&unit)) else {
            return Err(self.error(Why::UnknownUnit, at, unit));
        };
        let part = self.text.get(start..self.at).unwrap_or("");
        count
            .checked_mul(*nanos)
            .map(Duration::from_nanos)
            .ok_or_else(|| self.error(Why::PeriodTooLong, start, part))
    }

    /// Reads a quota, up to the first word that does not belong to it.
    pub(crate) fn quota(&mut self) -> Result<Quota, ParseQuotaError> {
        let n = self.number("n")?;
        self.skip_space();
        let start = self.at;
        if self.rest().starts_with('/') {
            self.at += 1;
        } else if self.take(char::is_alphabetic).1 != "per" {
            return Err(self.unexpected_at(start, Why::NoSlash));
        }
        let mut quota = Quota::per(n, self.period("period")?);
        loop {
            let (start, word) = self.word();
            let (field, name) = match word {
                "burst" => (&mut quota.burst, "burst"),
                "initial" => (&mut quota.initial, "initial"),
                _ => {
                    self.at = start;
                    return Ok(quota);
                }
            };
            if field.is_some() {
                return Err(self.error(Why::Twice, start, word));
            }
            *field = Some(self.number(name)?);
        }
    }
}

impl FromStr for Quota {
    type Err = ParseQuotaError;

    fn from_str(text: &str) -> Result<Self, ParseQuotaError> {
        let mut reader = Reader::new(text);
        let quota = reader.quota()?;
        if reader.is_at_end() {
            Ok(quota)
        } else {
            Err(reader.unexpected(Why::UnknownOption("")))
        }
    }
}

/// Writes a length of time in the largest unit that divides it. The number 1 is written only if
/// `spell_one` is set.
pub(crate) fn write_period(
    f: &mut fmt::Formatter<'_>,
    period: Duration,
    spell_one: bool,
) -> fmt::Result {
    let period = period.as_nanos();
    // A quota with a period of 0 is refused later, but it can be written.
    let (names, unit) = UNITS
        .iter()
        .find(|(_, unit)| period > 0 && period.is_multiple_of(u128::from(*unit)))
        .unwrap_or(&(&["ns"], 1));
    let name = names.first().copied().unwrap_or_default();
    match period / u128::from(*unit) {
        1 if !spell_one => f.write_str(name),
        count => write!(f, "{count}{name}"),
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.n)?;
        write_period(f, self.period, false)?;
        if self.burst_size() != self.n {
            write!(f, " burst {}", self.burst_size())?;
        }
        if self.initial_permits() != self.burst_size() {
            write!(f, " initial {}", self.initial_permits())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
