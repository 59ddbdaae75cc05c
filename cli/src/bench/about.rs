//! Descriptions of the contestants that need no measurement: why each may be fast, and what it
//! can't do.

use super::contestants::timing::Kind;

/// What is known about a contestant, by its name.
#[derive(Debug)]
pub(crate) struct About {
    subject: &'static str,
    allowed: Reasons,
    denied: Reasons,
    /// Set for limiters that are not tollgate's.
    cannot: Option<&'static str>,
}

/// Why a decision may be cheap on one thread, and on several.
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
    "a thread that releases the lock can take it again before the others wake, with the word still \
     in its cache",
];
const OWN_KEYS: &str =
    "two threads rarely use the same key at once, and each key has its own state";
const BLOCKS: &str = "A thread that is preempted while it holds the lock blocks all others.";

/// In the order of the measurements.
static ALL: [About; 14] = [
    about("token bucket", EXCHANGE, NO_WRITE),
    about(
        "sharded",
        [
            EXCHANGE[0],
            "each core has its own word, and threads seldom write what another thread reads",
        ],
        NO_WRITE,
    ),
    about(
        "lease",
        [
            "a decision takes a permit that its thread already holds",
            "a decision takes a permit that its thread already holds, and few decisions touch a \
             shared word",
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
        "It can't return a permit, and it rounds the time of a permit to whole nanoseconds: 400 \
         million a second becomes 500 million.",
    ),
    about(
        "ratelimit",
        ["a decision that refills nothing is one exchange, without a lock"; 2],
        ["a denial that refills nothing only reads"; 2],
    )
    .that_cannot(
        "It can't return a permit, and each refill drops fractions below a millionth of a permit: at \
         one a second, polled every 1.999 microseconds, it grants one in two seconds.",
    ),
    about("leaky-bucket", LOCK, LOCK).that_cannot(
        "Its non-blocking call takes a mutex and can't say how long to wait. Its permits arrive \
         all at once, at the end of an interval.",
    ),
    about("counter window", ["a decision is one addition, which never needs a retry"; 2], [
        "a denial is one addition, which never needs a retry"; 2
    ])
    .that_cannot(
        "It can't keep its limit around the boundary of two windows: it allows twice the limit there.",
    ),
    about(
        "governor keyed",
        ["another thread seldom holds the lock of the key's map shard", OWN_KEYS],
        ["a denial writes only the lock of its map shard"; 2],
    )
    .that_cannot(
        "It can't remove a single key: idle keys stay until a call to retain_recent, which visits \
         all keys.",
    ),
    about("locked map", [LOCK[0], OWN_KEYS], [LOCK[0], OWN_KEYS]).that_cannot(
        "A thread that is preempted while it holds a key's lock blocks all requests for the key, \
         and idle keys are never removed.",
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

/// Returns why a contestant's decisions may be cheap, on one thread or on several.
pub(crate) fn reason(subject: &str, kind: Kind, threads: usize) -> Option<&'static str> {
    let about = About::of(subject)?;
    let [alone, together] = match kind {
        Kind::Allowed => about.allowed,
        Kind::Denied => about.denied,
    };
    Some(if threads == 1 { alone } else { together })
}

/// Returns what a contestant can't do, if it is not tollgate's.
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
