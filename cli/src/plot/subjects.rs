//! The algorithms that are drawn, all with one quota.

/// The permits in a period, which is also the burst.
pub(crate) const LIMIT: u64 = 10;

/// The period.
pub(crate) const PERIOD_NS: u64 = 1_000_000_000;

/// An algorithm and its names.
#[derive(Debug)]
pub(crate) struct Subject {
    /// The file name of its picture.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// The text that the library parses, with the limit and the period from above.
    pub(crate) text: &'static str,
}

const fn subject(name: &'static str, title: &'static str, text: &'static str) -> Subject {
    Subject { name, title, text }
}

/// In the order of the guide.
pub(crate) const ALL: [Subject; 9] = [
    subject("token-bucket", "Token bucket", "token-bucket 10/s"),
    subject("gcra", "GCRA", "gcra 10/s"),
    subject("leaky-meter", "Leaky bucket, meter", "leaky-meter 10/s"),
    subject("leaky-queue", "Leaky bucket, queue", "leaky-queue 10/s"),
    subject("fixed-window", "Fixed window, aligned", "fixed-window 10/s"),
    subject(
        "fixed-window-first-hit",
        "Fixed window, opened by the first hit",
        "fixed-window 10/s first-hit",
    ),
    subject("sliding-window", "Sliding window", "sliding-window 10/s"),
    subject("intervals", "Intervals, aligned", "intervals 10/s"),
    subject(
        "intervals-greedy",
        "Intervals, greedy",
        "intervals 10/s greedy",
    ),
];

/// Their names, for the `--algorithm` argument.
pub(crate) const NAMES: [&str; ALL.len()] = {
    let mut names = [""; ALL.len()];
    let mut i = 0;
    while i < ALL.len() {
        names[i] = ALL[i].name;
        i += 1;
    }
    names
};
