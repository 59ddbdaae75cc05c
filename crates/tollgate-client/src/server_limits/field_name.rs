//! Names of fields that say something of a limit.

/// What a field says, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldName<'h> {
    /// `RateLimit`.
    State,
    /// `RateLimit-Policy`.
    Policy,
    /// One number of a limit, for instance `X-RateLimit-Remaining`.
    Group(Group<'h>, Kind),
}

/// Fields that belong to one limit have the same prefix, and say the same of what they count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group<'h> {
    /// What is before `RateLimit`, for instance `x-`.
    prefix: &'h str,
    /// What is counted, for instance `tokens`. It is often empty.
    counted: &'h str,
}

/// What a field says of its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Limit,
    Remaining,
    Reset,
    ResetAfter,
    Used,
    /// How many permits come back in an interval.
    Rate,
    Burst,
    /// The interval of the rate in seconds: 1 if there is none.
    Interval,
    Name,
}

const KINDS: [(&str, Kind); 13] = [
    ("limit", Kind::Limit),
    ("remaining", Kind::Remaining),
    ("reset", Kind::Reset),
    ("used", Kind::Used),
    ("reset-after", Kind::ResetAfter),
    ("observed", Kind::Used),
    ("replenish-rate", Kind::Rate),
    ("fillrate", Kind::Rate),
    ("burst-capacity", Kind::Burst),
    ("interval-seconds", Kind::Interval),
    ("bucket", Kind::Name),
    ("resource", Kind::Name),
    ("name", Kind::Name),
];

/// This many kinds, from the first on, can be before or after what is counted.
const COUNTING: usize = 4;

impl<'h> FieldName<'h> {
    /// Reads a name in lower case.
    pub(super) fn of(name: &'h str) -> Option<Self> {
        let (prefix, rest) = name
            .split_once("ratelimit")
            .or_else(|| name.split_once("rate-limit"))?;
        if !prefix.is_empty() && !prefix.ends_with('-') {
            return None;
        }
        let group = |counted| Group { prefix, counted };
        match rest {
            // `X-Rate-Limit: 700`
            "" if name.ends_with("rate-limit") => {
                return Some(Self::Group(group(""), Kind::Limit));
            }
            "" => return Some(Self::State),
            "-policy" => return Some(Self::Policy),
            _ => {}
        }
        let rest = rest.strip_prefix('-')?;
        if let Some((_, kind)) = KINDS.iter().find(|(text, _)| *text == rest) {
            return Some(Self::Group(group(""), *kind));
        }
        KINDS.iter().take(COUNTING).find_map(|(text, kind)| {
            let after = rest
                .strip_prefix(text)
                .and_then(|rest| rest.strip_prefix('-'));
            let before = || rest.strip_suffix(text)?.strip_suffix('-');
            Some(Self::Group(group(after.or_else(before)?), *kind))
        })
    }
}

impl<'h> Group<'h> {
    /// Returns the limit's name if no field names it: what is counted, or the text before
    /// `RateLimit` without `X-`.
    pub(super) fn name(self) -> &'h str {
        if !self.counted.is_empty() {
            return self.counted;
        }
        let prefix = self.prefix.strip_prefix("x-").unwrap_or(self.prefix);
        prefix.trim_end_matches('-')
    }

    /// Returns the length of the window in seconds, if what is counted says it.
    pub(super) fn window(self) -> Option<u64> {
        Some(match self.counted {
            "second" => 1,
            "minute" => 60,
            "hour" => 3600,
            "day" => 86_400,
            _ => return None,
        })
    }
}
