//! Numbers with a fraction, and times in the forms that servers write.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::ServerLimits;

/// From this number of seconds on, it is a time since 1970.
const EPOCH_SECONDS: u64 = 1_000_000_000;

/// From this number on, it is a time since 1970 in milliseconds.
const EPOCH_MILLIS: u64 = 100_000_000_000;

/// A number that is not negative, with nine digits after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    whole: u64,
    nanos: u32,
}

impl Decimal {
    /// Reads digits, with a point between them or not. A number that is too large is the largest.
    pub(super) fn of(text: &[u8]) -> Option<Self> {
        let mut parts = text.splitn(2, |byte| *byte == b'.');
        let whole = digits(parts.next()?)?;
        let nanos = match parts.next() {
            None => 0,
            Some(fraction) => {
                digits(fraction)?;
                let nine = fraction.iter().chain(std::iter::repeat(&b'0')).take(9);
                nine.fold(0, add_digit)
            }
        };
        let nanos = u32::try_from(nanos).ok()?;
        Some(Self { whole, nanos })
    }

    pub(super) const fn whole(self) -> u64 {
        self.whole
    }

    fn seconds(self) -> Duration {
        Duration::new(self.whole, self.nanos)
    }
}

/// Reads one or more digits. A number that is too large is the largest.
fn digits(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| text.iter().fold(0, add_digit))
}

fn add_digit(number: u64, digit: &u8) -> u64 {
    let digit = u64::from(digit.saturating_sub(b'0'));
    number.saturating_mul(10).saturating_add(digit)
}

/// Reads `Retry-After`: seconds or a date.
pub(super) fn retry_after(text: &[u8], now: SystemTime) -> Option<Duration> {
    let text = text.trim_ascii();
    let seconds = Decimal::of(text).map(Decimal::seconds);
    let wait = seconds.or_else(|| Some(until(date(text)?, now)))?;
    Some(wait.min(ServerLimits::MAX_WAIT))
}

/// Reads when a limit resets, as a number of seconds, a number since 1970, a date or a time.
pub(super) fn reset(text: &[u8], now: SystemTime) -> Option<Duration> {
    let text = text.trim_ascii();
    let wait = match Decimal::of(text) {
        Some(number) if number.whole < EPOCH_SECONDS => number.seconds(),
        Some(number) => {
            let since = if number.whole < EPOCH_MILLIS {
                number.seconds()
            } else {
                Duration::from_millis(number.whole)
            };
            // A time beyond those of the clock is far away.
            UNIX_EPOCH
                .checked_add(since)
                .map_or(Duration::MAX, |time| until(time, now))
        }
        None => match units(text) {
            Some(wait) => wait,
            None => until(timestamp(text).or_else(|| date(text))?, now),
        },
    };
    Some(wait.min(ServerLimits::MAX_WAIT))
}

/// Reads how long until a limit resets.
pub(super) fn after(text: &[u8]) -> Option<Duration> {
    let seconds = Decimal::of(text).map(Decimal::seconds);
    Some(seconds.or_else(|| units(text))?.min(ServerLimits::MAX_WAIT))
}

/// Reads a date in one of the forms of HTTP.
pub(super) fn date(text: &[u8]) -> Option<SystemTime> {
    // The longest form has 33 bytes.
    if text.len() > 64 {
        return None;
    }
    httpdate::parse_http_date(std::str::from_utf8(text).ok()?).ok()
}

fn until(time: SystemTime, now: SystemTime) -> Duration {
    time.duration_since(now).unwrap_or_default()
}

/// Reads a time with units, for instance `1h2m3.5s` or `120ms`.
fn units(mut text: &[u8]) -> Option<Duration> {
    if text.is_empty() {
        return None;
    }
    let mut sum = Duration::ZERO;
    while !text.is_empty() {
        let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let end = text.iter().position(|byte| !is_number(byte))?;
        let (number, rest) = text.split_at_checked(end)?;
        let number = Decimal::of(number)?;
        let end = rest.iter().position(is_number).unwrap_or(rest.len());
        let (unit, rest) = rest.split_at_checked(end)?;
        let time = number.seconds().min(ServerLimits::MAX_WAIT);
        let time = match unit {
            b"h" => time.saturating_mul(3600),
            b"m" => time.saturating_mul(60),
            b"s" => time,
            b"ms" => number.seconds() / 1000,
            b"us" => number.seconds() / 1_000_000,
            b"ns" => number.seconds() / 1_000_000_000,
            _ => return None,
        };
        sum = sum.saturating_add(time);
        text = rest;
    }
    Some(sum)
}

/// Reads a time as in RFC 3339, such as `2026-03-26T16:00:00.5+01:00`. The seconds may be missing.
fn timestamp(text: &[u8]) -> Option<SystemTime> {
    let (date, time) = (text.get(..10)?, text.get(11..)?);
    let is_separated = matches!(text.get(10), Some(b'T' | b't' | b' '));
    let [year @ .., b'-', m1, m2, b'-', d1, d2] = date else {
        return None;
    };
    let year = i64::try_from(digits(year)?).ok()?;
    let (month, day) = (digits(&[*m1, *m2])?, digits(&[*d1, *d2])?);
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day) && year >= 1970;
    if !is_separated || !is_date {
        return None;
    }
    let end = time
        .iter()
        .position(|byte| matches!(byte, b'Z' | b'z' | b'+' | b'-'))?;
    let (time, zone) = time.split_at_checked(end)?;
    let offset = match zone {
        b"Z" | b"z" => 0,
        [sign, h1, h2, b':', m1, m2] => {
            let minutes = minutes(&[*h1, *h2], &[*m1, *m2])?;
            if *sign == b'-' { -minutes } else { minutes }
        }
        _ => return None,
    };
    let (minute, seconds) = match time {
        [h1, h2, b':', m1, m2] => (minutes(&[*h1, *h2], &[*m1, *m2])?, Duration::ZERO),
        [h1, h2, b':', m1, m2, b':', seconds @ ..] => {
            let seconds = Decimal::of(seconds)?;
            // A second may be added to a minute.
            if seconds.whole > 60 {
                return None;
            }
            (minutes(&[*h1, *h2], &[*m1, *m2])?, seconds.seconds())
        }
        _ => return None,
    };
    let days = days_since_1970(year, i64::try_from(month).ok()?, i64::try_from(day).ok()?);
    let minutes = days.checked_mul(24 * 60)?.checked_add(minute)?;
    let minutes = u64::try_from(minutes.checked_sub(offset)?).ok()?;
    let since = Duration::from_secs(minutes.checked_mul(60)?).checked_add(seconds)?;
    UNIX_EPOCH.checked_add(since)
}

/// Reads hours and minutes.
fn minutes(hour: &[u8], minute: &[u8]) -> Option<i64> {
    let (hour, minute) = (digits(hour)?, digits(minute)?);
    let is_time = hour < 24 && minute < 60;
    is_time.then(|| i64::try_from(hour.saturating_mul(60).saturating_add(minute)).ok())?
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar. The year is from 1970 on.
const fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March, so that a leap day is the last one.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leaps = year / 4 - year / 100 + year / 400;
    // The days before a month, of five months with 153 days.
    year * 365 + leaps + (153 * month + 2) / 5 + day - 1 - 719_468
}
