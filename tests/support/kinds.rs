//! Every kind of algorithm, small and large.

pub(crate) const KINDS: [&str; 13] = [
    "token-bucket 10/s",
    "token-bucket 13/s burst 40",
    "gcra 10/s burst 3",
    "gcra 1/10ms tolerance 25ms",
    "leaky-meter 10/s burst 35",
    "leaky-queue 7/min burst 5 free 2",
    "fixed-window 10/s",
    "fixed-window 100/min offset 7s",
    "fixed-window 5/s first-hit",
    "sliding-window 10/s",
    "sliding-window 50/min origin 9s rounding down",
    "intervals 10/s burst 20",
    "intervals 10/s burst 25 greedy",
];
