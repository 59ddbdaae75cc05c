//! Limits in fields with one number each.

use std::time::{Duration, SystemTime};

use super::field_name::{Group, Kind};
use super::ratelimit::Lists;
use super::structured::Split;
use super::times::{self, Decimal};
use super::{ServerLimit, ServerLimits};

/// What such fields say of the limits.
#[derive(Debug, Default)]
pub(super) struct Groups<'h>(Vec<(Group<'h>, Numbers)>);

/// What they say of one limit. The first value that can be read counts.
#[derive(Debug, Default)]
struct Numbers {
    name: Option<String>,
    limit: Option<u64>,
    remaining: Option<u64>,
    used: Option<u64>,
    window: Option<Duration>,
    reset: Option<Duration>,
    reset_after: Option<Duration>,
    rate: Option<u64>,
    burst: Option<u64>,
    interval: Option<u64>,
}

impl<'h> Groups<'h> {
    /// Reads a line of a field.
    pub(super) fn read(
        &mut self,
        group: Group<'h>,
        kind: Kind,
        line: &[u8],
        now: SystemTime,
        lists: &mut Lists,
    ) {
        let Some(numbers) = self.numbers(group) else {
            return;
        };
        let mut members = Split::new(line, b',').map(<[u8]>::trim_ascii);
        let first = members.next().unwrap_or(b"");
        let (value, window) = value_and_window(first);
        let number = Decimal::of(value).map(|number| number.whole().min(ServerLimits::MAX_PERMITS));
        let set = |number: &mut Option<u64>, value: Option<u64>| *number = number.or(value);
        let set_time =
            |time: &mut Option<Duration>, value: Option<Duration>| *time = time.or(value);
        match kind {
            Kind::Limit => set(&mut numbers.limit, number),
            // Some servers go on to count below zero.
            Kind::Remaining if value.starts_with(b"-") => {
                let below = value.get(1..).and_then(Decimal::of);
                set(&mut numbers.remaining, below.map(|_| 0));
            }
            Kind::Remaining => set(&mut numbers.remaining, number),
            Kind::Used => set(&mut numbers.used, number),
            // A date has a comma.
            Kind::Reset => set_time(
                &mut numbers.reset,
                times::reset(value, now).or_else(|| times::reset(line, now)),
            ),
            Kind::ResetAfter => set_time(&mut numbers.reset_after, times::after(value)),
            Kind::Rate => set(&mut numbers.rate, number),
            Kind::Burst => set(&mut numbers.burst, number),
            Kind::Interval => set(&mut numbers.interval, number),
            Kind::Name => {
                if numbers.name.is_none() {
                    numbers.name = name(line);
                }
            }
        }
        if matches!(kind, Kind::Limit | Kind::Remaining) {
            set_time(&mut numbers.window, window);
        }
        if kind == Kind::Limit {
            // The policies of drafts 00 to 03: `100, 100;w=60, 5000;w=3600`
            for member in members.take(ServerLimits::MAX_LIMITS) {
                let (value, window) = value_and_window(member);
                if let (Some(quota), Some(window)) = (Decimal::of(value), window) {
                    lists.add_window(quota.whole(), window);
                }
            }
        }
    }

    /// Returns what is known of a limit, or `None` if there are too many limits.
    fn numbers(&mut self, group: Group<'h>) -> Option<&mut Numbers> {
        let found = self.0.iter().position(|(known, _)| *known == group);
        if found.is_none() {
            if self.0.len() >= ServerLimits::MAX_LIMITS
                || group.name().len() > ServerLimits::MAX_NAME
            {
                return None;
            }
            self.0.push((group, Numbers::default()));
        }
        let index = found.unwrap_or(self.0.len().saturating_sub(1));
        self.0.get_mut(index).map(|(_, numbers)| numbers)
    }

    /// Returns the limits.
    pub(super) fn limits(self) -> impl Iterator<Item = ServerLimit> + use<'h> {
        let limits = self
            .0
            .into_iter()
            .map(|(group, numbers)| numbers.limit(group));
        limits.filter(|limit| !limit.is_empty())
    }
}

impl Numbers {
    fn limit(self, group: Group<'_>) -> ServerLimit {
        let used = self.used.zip(self.remaining);
        let quota = self.limit.or(self.burst);
        let quota = quota.or(used.map(|(used, left)| used.saturating_add(left)));
        let refill = || {
            let rate = self.rate.filter(|rate| *rate > 0)?;
            Some(time_of(quota?, rate, self.interval.unwrap_or(1)))
        };
        let named = || group.window().map(Duration::from_secs);
        let window = self.window.or_else(refill).or_else(named);
        ServerLimit {
            name: self.name.unwrap_or_else(|| group.name().to_owned()),
            quota: quota.map(|quota| quota.min(ServerLimits::MAX_PERMITS)),
            window: window.map(|window| window.min(ServerLimits::MAX_WINDOW)),
            remaining: self.remaining,
            reset: self.reset_after.or(self.reset),
            ..ServerLimit::default()
        }
    }
}

/// Returns how long `quota` permits take at `rate` permits in each `interval` of seconds, and at
/// most the longest window.
fn time_of(quota: u64, rate: u64, interval: u64) -> Duration {
    let permit_seconds = u128::from(quota) * u128::from(interval);
    let nanos = permit_seconds.saturating_mul(1_000_000_000);
    let nanos = nanos.div_ceil(u128::from(rate));
    let longest = ServerLimits::MAX_WINDOW;
    u64::try_from(nanos).map_or(longest, |nanos| Duration::from_nanos(nanos).min(longest))
}

/// Reads `100;w=60`.
fn value_and_window(text: &[u8]) -> (&[u8], Option<Duration>) {
    let mut parts = Split::new(text, b';').map(<[u8]>::trim_ascii);
    let value = parts.next().unwrap_or(b"");
    let window = parts.find_map(|part| {
        let seconds = part.strip_prefix(b"w=").or(part.strip_prefix(b"window="));
        Some(Duration::from_secs(Decimal::of(seconds?)?.whole()))
    });
    (value, window)
}

/// Reads the name of a limit: visible text.
fn name(line: &[u8]) -> Option<String> {
    let text = line.trim_ascii();
    if text.is_empty() || text.len() > ServerLimits::MAX_NAME {
        return None;
    }
    String::from_utf8(text.to_vec()).ok()
}
