//! Numbers and times, as the page says them.

use tollgate_page::Html;

/// Writes a whole number in groups of three digits.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && digits.len() > 4 {
            // A space that is narrow, and does not break.
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// Writes a number of requests a second.
pub(super) fn rate(per_s: f64) -> String {
    match per_s {
        n if n >= 99.95 => count(n.round().clamp(0.0, 1e15) as u64),
        n => format!("{n:.1}"),
    }
}

/// Writes at least and at most.
pub(super) fn bounds((low, high): (u64, u64)) -> String {
    match low == high {
        true => count(low),
        false => format!("{} to {}", count(low), count(high)),
    }
}

/// Writes how many there are of something, by its singular and its plural.
pub(super) fn plural(number: u64, [one, many]: [&str; 2]) -> String {
    let what = if number == 1 { one } else { many };
    format!("{} {what}", count(number))
}

/// Writes how often something happened at most, after "No other key was denied".
pub(super) fn most_times(number: u64) -> String {
    match number {
        0 => String::new(),
        1 => " more than once".to_owned(),
        _ => format!(" more than {} times", count(number)),
    }
}

/// Writes a share in percent.
pub(super) fn percent(part: f64, whole: f64) -> String {
    match whole > 0.0 {
        true => format!("{:.1} %", 100.0 * part / whole),
        false => "-".to_owned(),
    }
}

/// Writes a time, which is in microseconds, with a unit.
pub(super) fn time_us(us: u64) -> String {
    match us {
        us if us >= 1_000_000 => format!("{} s", us as f64 / 1e6),
        us if us >= 1000 => format!("{} ms", us as f64 / 1e3),
        us => format!("{us} µs"),
    }
}

/// Says within which bound of the histogram decisions were made.
pub(super) fn within(us: u64) -> String {
    match us {
        u64::MAX => "over 1 s".to_owned(),
        us => time_us(us),
    }
}

/// Writes how long something took, in seconds.
pub(super) fn long(s: u64) -> String {
    let (minutes, hours, days) = (s / 60, s / 3600, s / 86_400);
    match s {
        0..120 => format!("{s} s"),
        120..7200 => format!("{minutes} min"),
        7200..172_800 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// Writes a time since 1970 as how long ago it was. The script shows the time of the day too.
pub(super) fn ago(at_s: u64, now_s: u64) -> Html {
    let mut html = Html::new();
    html.raw("<span data-at=\"").text(at_s).raw("\">");
    html.text(long(now_s.saturating_sub(at_s)))
        .raw(" ago</span>");
    html
}

#[cfg(test)]
mod tests {
    use super::{bounds, count, long, most_times, plural, rate, time_us};

    #[test]
    fn numbers_are_short_and_exact() {
        assert_eq!(
            [0, 9999, 10_000, 1_234_567]
                .map(count)
                .map(|it| it.replace('\u{202f}', "_")),
            ["0", "9999", "10_000", "1_234_567"]
        );
        assert_eq!(
            [0.0, 0.04, 12.34, 99.96, 1e4].map(rate),
            ["0.0", "0.0", "12.3", "100", "10\u{202f}000"]
        );
        assert_eq!([bounds((3, 3)), bounds((3, 5))], ["3", "3 to 5"]);
        assert_eq!(
            [25, 2500, 1_000_000].map(time_us),
            ["25 µs", "2.5 ms", "1 s"]
        );
        assert_eq!(
            [0, 1, 2].map(|n| plural(n, ["rule is", "rules are"])),
            ["0 rules are", "1 rule is", "2 rules are"]
        );
        assert_eq!(
            [0, 1, 2].map(most_times),
            ["", " more than once", " more than 2 times"]
        );
        let times = [0, 119, 120, 7199, 7200, 90_000, 172_800];
        let said = [
            "0 s",
            "119 s",
            "2 min",
            "119 min",
            "2 h 0 min",
            "25 h 0 min",
            "2 d 0 h",
        ];
        assert_eq!(times.map(long), said);
    }
}
