//! What is known of each contestant without measuring it: why it may be fast, and what it can't do.

use super::contestants::timing::Kind;

/// A contestant, by what it is called.
#[derive(Debug)]
pub(crate) struct About {
    subject: &'static str,
    allowed: Reasons,
    denied: Reasons,
    /// For what is not tollgate's.
    cannot: Option<&'static str>,
}

/// Why a decision may cost little: on one thread, and on several.
type Reasons = [&'static str; 2];

const EXCHANGE: Reasons = ["a decision is one load and one exchange, without a lock"; 2];
const NO_WRITE: Reasons = [
    "a denial is one load and no write",
    "a denial is one load and no write, so threads don't disturb each other",
];
const ONLY_READS: Reasons = [
    "a denial only reads",
    "a denial only reads, so threads don't disturb each other",
];
const LOCK: Reasons = [
    "no other thread wants the lock",
    "a thread that leaves the lock can take it again before the others wake, and keeps the word in \
     its cache",
];
const OWN_KEYS: &str =
    "two threads rarely use the same key at once, and each key has a state of its own";
const BLOCKS: &str = "A thread that is preempted while it holds the lock blocks all others.";

/// In the order of the measurements.
static ALL: [About; 14] = [
    about("token bucket", EXCHANGE, NO_WRITE),
    about(
        "sharded",
        [
            EXCHANGE[0],
            "each core has a word of its own, and threads seldom write what another reads",
        ],
        NO_WRITE,
    ),
    about(
        "lease of 64",
        [
            "a decision takes one of the permits that its thread holds already",
            "a decision takes one of the permits that its thread holds already, and 63 of 64 touch \
             no word of another thread",
        ],
        NO_WRITE,
    ),
    about("60 slots", EXCHANGE, ONLY_READS),
    about(
        "log of 1000",
        ["a decision is two exchanges, without a lock"; 2],
        ONLY_READS,
    ),
    about(
        "keyed",
        ["a key's word is found by its hash, without a lock", OWN_KEYS],
        ["a denial only reads, and takes no lock"; 2],
    ),
    about("std mutex", LOCK, LOCK).that_cannot(BLOCKS),
    about("parking_lot", LOCK, LOCK).that_cannot(BLOCKS),
    about("governor", EXCHANGE, NO_WRITE).that_cannot(
        "It can't give a permit back, and it makes a permit in a whole number of nanoseconds: 400 \
         million a second become 500 million.",
    ),
    about(
        "ratelimit",
        ["a decision that refills nothing is one exchange, without a lock"; 2],
        ["a denial that refills nothing only reads"; 2],
    )
    .that_cannot(
        "It can't give a permit back, and each refill drops what is below a millionth of a permit: \
         one a second, asked every 1.999 microseconds, grants one in two seconds.",
    ),
    about("leaky-bucket", LOCK, LOCK).that_cannot(
        "Its verb that does not wait takes a mutex and can't say how long to wait, and its permits \
         come all at once, at the end of an interval.",
    ),
    about("counter window", ["a decision is one addition, which never has to be tried again"; 2], [
        "a denial is one addition, which never has to be tried again"; 2
    ])
    .that_cannot(
        "It can't keep its limit around the boundary of two windows: it allows twice as much there.",
    ),
    about(
        "governor keyed",
        ["the lock of a key's part of the map is seldom held by another thread", OWN_KEYS],
        ["a denial writes nothing but the lock of its part of the map"; 2],
    )
    .that_cannot(
        "It can't remove a single key: idle keys stay until a call of retain_recent, which visits \
         all of them.",
    ),
    about("locked map", [LOCK[0], OWN_KEYS], [LOCK[0], OWN_KEYS]).that_cannot(
        "A thread that is preempted while it holds a key's lock blocks all that ask for the key, \
         and idle keys stay for good.",
    ),
];

const fn about(subject: &'static str, allowed: Reasons, denied: Reasons) -> About {
    About {
        subject,
        allowed,
        denied,
        cannot: None,
    }
}

impl About {
    const fn that_cannot(mut self, what: &'static str) -> Self {
        self.cannot = Some(what);
        self
    }

    fn of(subject: &str) -> Option<&'static Self> {
        ALL.iter().find(|about| about.subject == subject)
    }
}

/// Why a contestant's decisions may cost little, on one thread or on several.
pub(crate) fn reason(subject: &str, kind: Kind, threads: usize) -> Option<&'static str> {
    let about = About::of(subject)?;
    let [alone, together] = match kind {
        Kind::Allowed => about.allowed,
        Kind::Denied => about.denied,
    };
    Some(if threads == 1 { alone } else { together })
}

/// What it can't do, if it is not tollgate's.
pub(crate) fn cannot(subject: &str) -> Option<&'static str> {
    About::of(subject)?.cannot
}

#[cfg(test)]
mod tests {
    use super::{About, cannot};
    use crate::bench::contest;
    use crate::bench::contestants::Source;

    #[test]
    fn every_limiter_is_known() {
        for contest in contest::all(&[1], false).expect("contestants") {
            let (subject, source) = (contest.entry.subject, contest.entry.source);
            let is_floor = source == Source::Raw;
            assert_eq!(About::of(subject).is_some(), !is_floor, "{subject}");
            let is_own = matches!(source, Source::Own(_));
            assert!(!is_own || cannot(subject).is_some(), "{subject}");
        }
    }
}
