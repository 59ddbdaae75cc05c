//! Statistics in Prometheus' text format.

use core::fmt::{self, Write};
use std::string::ToString;

use super::{Metric, Metrics, MetricsError};

/// A limiter's labels, as names and values, and its statistics.
type Labeled<'a> = (&'a [(&'a str, &'a str)], &'a dyn Metrics);

/// Writes statistics as Prometheus text (exposition format 0.0.4).
///
/// A metric is named after the statistics' field or the limiter's method, with the prefix and `_`
/// in front: `tollgate_limit`. A metric that only increases ends with `_total`, and a time with
/// `_seconds`.
///
/// Write all limiters of a program in one call: Prometheus accepts only one description of each
/// metric, so it rejects the combined output of two calls.
///
/// Use labels to tell limiters apart. Don't put a key into a label: Prometheus keeps a time series
/// for each value that it has ever seen.
///
/// ```
/// use tollgate::stats::write_prometheus;
/// use tollgate::{Concurrency, Counted, Limiter, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let login = Counted::new(Limiter::token_bucket(Quota::per_minute(10))?);
/// let search = Counted::new(Limiter::token_bucket(Quota::per_second(100))?);
/// let uploads = Concurrency::new(8)?;
/// login.try_acquire()?;
///
/// let mut text = String::new();
/// write_prometheus(
///     &mut text,
///     "tollgate",
///     &[
///         (&[("limiter", "login")], &login.stats()),
///         (&[("limiter", "search")], &search.stats()),
///         (&[("limiter", "uploads")], &uploads),
///     ],
/// )?;
/// let lines: Vec<_> = text.lines().collect();
/// assert_eq!(lines[0], "# HELP tollgate_granted_total Requests that were granted.");
/// assert_eq!(lines[1], "# TYPE tollgate_granted_total counter");
/// assert_eq!(lines[2], "tollgate_granted_total{limiter=\"login\"} 1");
/// assert_eq!(lines[3], "tollgate_granted_total{limiter=\"search\"} 0");
/// assert!(lines.contains(&"tollgate_limit{limiter=\"uploads\"} 8"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`MetricsError`] if the prefix or the name of a label is not valid in Prometheus, if a limiter
/// has two labels of the same name, or if two limiters with the same labels have a metric in
/// common. Nothing is written then. If writing to `out` fails, a part may have been written.
pub fn write_prometheus<W: Write + ?Sized>(
    out: &mut W,
    prefix: &str,
    limiters: &[Labeled<'_>],
) -> Result<(), MetricsError> {
    check(prefix, limiters)?;
    for metric in Metric::ALL {
        let (name, help) = (metric.name(), metric.help());
        let values = limiters.iter().filter_map(|(labels, limiter)| {
            let value = limiter.value(*metric)?;
            Some((labels, value))
        });
        for (place, (labels, value)) in values.enumerate() {
            if place == 0 {
                let kind = match metric.is_counter() {
                    true => "counter",
                    false => "gauge",
                };
                writeln!(out, "# HELP {prefix}_{name} {help}")?;
                writeln!(out, "# TYPE {prefix}_{name} {kind}")?;
            }
            write!(out, "{prefix}_{name}")?;
            write_labels(out, labels)?;
            writeln!(out, " {value}")?;
        }
    }
    Ok(())
}

fn write_labels<W: Write + ?Sized>(out: &mut W, labels: &[(&str, &str)]) -> fmt::Result {
    let mut before = '{';
    for (name, value) in labels {
        write!(out, "{before}{name}=\"")?;
        for letter in value.chars() {
            match letter {
                '\\' => out.write_str("\\\\")?,
                '"' => out.write_str("\\\"")?,
                '\n' => out.write_str("\\n")?,
                letter => out.write_char(letter)?,
            }
        }
        out.write_char('"')?;
        before = ',';
    }
    match labels.is_empty() {
        true => Ok(()),
        false => out.write_char('}'),
    }
}

fn check(prefix: &str, limiters: &[Labeled<'_>]) -> Result<(), MetricsError> {
    if !is_name(prefix, ":") {
        return Err(MetricsError::Prefix(prefix.to_string()));
    }
    for (place, (labels, limiter)) in limiters.iter().enumerate() {
        for (at, (name, _)) in labels.iter().enumerate() {
            if !is_name(name, "") || name.starts_with("__") {
                return Err(MetricsError::LabelName((*name).to_string()));
            }
            if labels.iter().take(at).any(|(before, _)| before == name) {
                return Err(MetricsError::DuplicateLabel((*name).to_string()));
            }
        }
        let has_both = |other: &dyn Metrics, metric: Metric| {
            limiter.value(metric).is_some() && other.value(metric).is_some()
        };
        for (earlier, (others, other)) in limiters.iter().take(place).enumerate() {
            // No name occurs twice, so two lists are the same if they are equally long and one
            // contains the other.
            let are_same =
                labels.len() == others.len() && labels.iter().all(|l| others.contains(l));
            if are_same && Metric::ALL.iter().any(|metric| has_both(*other, *metric)) {
                return Err(MetricsError::SameLabels(earlier, place));
            }
        }
    }
    Ok(())
}

/// Returns whether `name` has only letters, digits, `_` and the characters of `besides`, and does
/// not begin with a digit.
fn is_name(name: &str, besides: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || besides.contains(c);
    name.chars().all(allowed) && name.starts_with(|c: char| !c.is_ascii_digit())
}
