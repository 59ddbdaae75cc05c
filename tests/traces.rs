//! Shows that tollgate decides as recorded limiters did, call by call, and names each difference.
//!
//! It runs every trace in tests/traces, or in the folder that the environment variable
//! `TOLLGATE_TRACES` names, and prints what it compared. tests/traces/README.md describes the
//! files, tests/replay is the runner, traces_support/ has the adapters, and docs/TRACES.md says how to
//! add a source.

mod traces_support;

use std::env;
use std::io::Write;
use std::path::PathBuf;
use std::sync::LazyLock;

use tollgate_replay::Direction::{self, OtherValue, TheyAdmitLess, TheyAdmitMore};
use tollgate_replay::{Line, Report, run_folder};
use traces_support::own_copy;
use traces_support::sources;

static OWN_COPY: LazyLock<Report> =
    LazyLock::new(|| run_folder(&own_copy(), sources::all()).expect("tests/traces"));

#[test]
fn recorded_decisions_are_made_again() {
    let other;
    let report = match env::var_os("TOLLGATE_TRACES") {
        None => &*OWN_COPY,
        Some(folder) => {
            other = run_folder(&PathBuf::from(folder), sources::all()).expect("TOLLGATE_TRACES");
            &other
        }
    };
    // Not by println, which the harness keeps to itself when a test passes.
    write!(std::io::stdout().lock(), "\n{report}").expect("standard output");
    let failures = report.failures();
    assert!(
        failures.is_empty(),
        "{} failures, see above",
        failures.len()
    );
}

/// A file: traces, operations, and its classes of differences.
type Expected = (
    &'static str,
    usize,
    usize,
    &'static [(&'static str, Direction, usize)],
);

const TIE: &str = "doubles at a tie";
const WENT_BACK: &str = "time went back: the seconds since are credited twice";
const FAILS_OPEN: &str = "an expiry of 0: the script fails and admits everything";
const UNLIMITED: &str = "an expiry of 0: never limited there, limited here";
const NO_CAPACITY: &str = "a capacity of 0: refused when it is built here";
const ABOVE_CAPACITY: &str = "asked above the capacity, it reports a full limiter";
const LEAKS_TWICE: &str = "time went back: the seconds since leak twice";
const DRIFT: &str = "thousandths are cut at each admitted request";
const LATE: &str = "a nanosecond late at a rate of no whole nanoseconds";
const END: &str = "at a window's very end it is open for two quanta more";
const COUNTS_ON: &str = "counts what it refuses beyond what fits the word";
const OPENED_BY_0: &str = "a hit of 0 opens a window";
const NOTHING_TAKEN: &str = "a window with nothing taken, or less than nothing, stays open";
const SPREADS: &str = "spreads hits evenly by delays";
const AT_THE_BEGINNING: &str = "at a window's beginning its reset is now";
const ROUNDED: &str = "doubles of a quarter of a microsecond";
const STILL_COUNTS: &str = "at a hit, what is exactly a window old still counts";
const FIRST_EVER: &str = "with nothing in the window its reset is that of the first hit of all";
const COUNTS_FIRST: &str = "counts before it forgets";
const CUT: &str = "waits are cut to whole nanoseconds";
const CREDITED_TWICE: &str = "time went back: the time since is credited twice";
const ROUNDED_HERE: &str = "levels are rounded to a part of a nanosecond here";
const IN_THE_MIDDLE: &str = "one in the middle of the line is cancelled, and something comes back";
const PAST_ITS_TIME: &str = "cancelled past its time, nothing comes back";
const MORE_BACK: &str = "cancelled, more comes back than was reserved";
const RESERVED_STILL: &str = "cancelled, and what was cancelled before counts as reserved still";
const OTHER_QUOTA: &str = "reserved before the quota changed and cancelled since, it comes back";
const LIMIT_0: &str = "a limit of 0: refused when it is built here";
const ONCE: &str = "a limit of 0: its burst is handed out once, refused when it is built here";
const NO_END: &str = "a limit without an end: refused when it is built here";
const CENTURIES: &str = "less than a token a year: refused when it is built here";
const OVERFLOWS: &str =
    "less than a token a year: a wait overflows and is none, refused when it is built here";
const NO_BURST: &str = "a burst of 0: refused when it is built here";
const TAKES_NONE: &str = "an id that is inside already needs a place and takes none";
const TAKES_ONE: &str = "takes one permit for several";
#[cfg(feature = "wide")]
const NO_PERMITS: &str = "none is an error there, and nothing here";
#[cfg(feature = "wide")]
const FREE_FOR_EVER: &str = "a warm-up of 0: free for ever there, the steady rate here";

/// Of two limiters in one file only one is replayed: docs/TRACES.md says why.
const NPM: &str = "npm_limiter.jsonl.gz";

/// Exactly these, so that no new difference hides in a class that is there already.
const EXPECTED: &[Expected] = &[
    (
        "go_throttled_gcra.jsonl.gz",
        11,
        3300,
        &[(ABOVE_CAPACITY, OtherValue, 125)],
    ),
    (
        "go_xtime_rate_2b4e439.jsonl.gz",
        53,
        11460,
        &[
            (NO_BURST, OtherValue, 400),
            (LIMIT_0, OtherValue, 800),
            (NO_END, OtherValue, 800),
            (PAST_ITS_TIME, OtherValue, 97),
            (RESERVED_STILL, OtherValue, 4),
            (MORE_BACK, OtherValue, 2),
            (CENTURIES, OtherValue, 440),
            (ROUNDED_HERE, TheyAdmitMore, 51),
            (ROUNDED_HERE, OtherValue, 492),
            (IN_THE_MIDDLE, OtherValue, 13),
            (OTHER_QUOTA, OtherValue, 1),
            (CREDITED_TWICE, TheyAdmitMore, 3),
            (CREDITED_TWICE, OtherValue, 58),
            (CUT, TheyAdmitMore, 441),
            (CUT, OtherValue, 361),
        ],
    ),
    (
        "go_xtime_rate_v0.3.0.jsonl.gz",
        53,
        11460,
        &[
            (NO_BURST, OtherValue, 400),
            (ONCE, OtherValue, 31),
            (LIMIT_0, OtherValue, 769),
            (NO_END, OtherValue, 800),
            (PAST_ITS_TIME, OtherValue, 111),
            (RESERVED_STILL, OtherValue, 6),
            (MORE_BACK, OtherValue, 1),
            (OVERFLOWS, OtherValue, 366),
            (CENTURIES, OtherValue, 74),
            (ROUNDED_HERE, TheyAdmitMore, 66),
            (ROUNDED_HERE, OtherValue, 436),
            (IN_THE_MIDDLE, OtherValue, 11),
            (OTHER_QUOTA, OtherValue, 3),
            (CREDITED_TWICE, TheyAdmitMore, 3),
            (CREDITED_TWICE, OtherValue, 47),
            (CUT, TheyAdmitMore, 420),
            (CUT, OtherValue, 375),
        ],
    ),
    #[cfg(feature = "wide")]
    (
        "guava_smooth_bursty.jsonl.gz",
        12,
        3600,
        &[(NO_PERMITS, OtherValue, 3)],
    ),
    #[cfg(feature = "wide")]
    (
        "guava_smooth_warming_up.jsonl.gz",
        96,
        19200,
        &[(NO_PERMITS, OtherValue, 23)],
    ),
    #[cfg(feature = "wide")]
    (
        "guava_smooth_warming_up_zero_period.jsonl.gz",
        8,
        1600,
        &[
            (FREE_FOR_EVER, TheyAdmitMore, 957),
            (FREE_FOR_EVER, OtherValue, 601),
            (NO_PERMITS, OtherValue, 2),
        ],
    ),
    (
        "limits_fixed_window.jsonl.gz",
        7,
        2100,
        &[
            (OPENED_BY_0, OtherValue, 3),
            (END, TheyAdmitMore, 88),
            (END, OtherValue, 33),
            (COUNTS_ON, OtherValue, 405),
        ],
    ),
    (
        "limits_moving_window.jsonl.gz",
        7,
        2100,
        &[
            (STILL_COUNTS, TheyAdmitLess, 84),
            (FIRST_EVER, TheyAdmitLess, 51),
            (FIRST_EVER, OtherValue, 83),
        ],
    ),
    (
        "limits_sliding_window_counter.jsonl.gz",
        7,
        2100,
        &[
            (AT_THE_BEGINNING, OtherValue, 73),
            (TIE, TheyAdmitMore, 2),
            (TIE, OtherValue, 1),
            (ROUNDED, OtherValue, 12),
        ],
    ),
    ("nginx_limit_req_realtime.jsonl.gz", 18, 5834, &[]),
    (
        "nginx_limit_req_virtual.jsonl.gz",
        14,
        4480,
        &[
            (LATE, TheyAdmitMore, 9),
            (DRIFT, TheyAdmitLess, 25),
            (DRIFT, OtherValue, 80),
        ],
    ),
    (NPM, 6, 1560, &[(TIE, OtherValue, 18)]),
    ("pyrate_fixed_window_aligned.jsonl.gz", 6, 1800, &[]),
    ("pyrate_gcra.jsonl.gz", 7, 2100, &[]),
    ("pyrate_sliding_log.jsonl.gz", 6, 1800, &[]),
    (
        "rate_limiter_flexible_memory.jsonl.gz",
        9,
        2340,
        &[
            (NOTHING_TAKEN, OtherValue, 77),
            (END, TheyAdmitMore, 107),
            (END, OtherValue, 34),
            (COUNTS_ON, OtherValue, 633),
            (SPREADS, OtherValue, 151),
        ],
    ),
    (
        "redis_shenyu_concurrent.jsonl.gz",
        4,
        1000,
        &[(TAKES_NONE, OtherValue, 13)],
    ),
    (
        "redis_shenyu_leaky_bucket.jsonl.gz",
        25,
        5250,
        &[
            (TIE, OtherValue, 6),
            (LEAKS_TWICE, TheyAdmitMore, 4),
            (LEAKS_TWICE, OtherValue, 32),
        ],
    ),
    (
        "redis_shenyu_sliding_window.jsonl.gz",
        18,
        3960,
        &[
            (COUNTS_FIRST, TheyAdmitMore, 1),
            (COUNTS_FIRST, TheyAdmitLess, 267),
            (COUNTS_FIRST, OtherValue, 743),
            (TAKES_ONE, TheyAdmitMore, 13),
            (TAKES_ONE, OtherValue, 23),
        ],
    ),
    (
        "redis_shenyu_token_bucket.jsonl.gz",
        25,
        5250,
        &[
            (FAILS_OPEN, TheyAdmitMore, 268),
            (FAILS_OPEN, OtherValue, 152),
            (TIE, TheyAdmitLess, 42),
            (TIE, OtherValue, 26),
            (WENT_BACK, TheyAdmitMore, 1),
            (WENT_BACK, OtherValue, 11),
        ],
    ),
    (
        "redis_spring_gateway_token_bucket.jsonl.gz",
        30,
        6900,
        &[
            (NO_CAPACITY, OtherValue, 460),
            (UNLIMITED, TheyAdmitMore, 255),
            (UNLIMITED, OtherValue, 77),
            (WENT_BACK, TheyAdmitMore, 13),
            (WENT_BACK, OtherValue, 7),
        ],
    ),
    ("rust_governor_gcra.jsonl.gz", 13, 3640, &[]),
    (
        "token_bucket_pypi.jsonl.gz",
        7,
        2100,
        &[(TIE, TheyAdmitMore, 1), (TIE, TheyAdmitLess, 60)],
    ),
];

#[test]
fn the_differences_are_exactly_these() {
    let covered = OWN_COPY.files.iter().filter(|f| f.covered_traces() > 0);
    let found = covered.map(|f| {
        let classes = f.divergences.iter();
        let classes = classes.map(|(&(class, direction), &count)| (class, direction, count));
        let classes: Vec<_> = classes.collect();
        (f.file.as_str(), f.covered_traces(), f.ops, classes)
    });
    let expected = EXPECTED.iter();
    let expected =
        expected.map(|&(file, traces, ops, classes)| (file, traces, ops, classes.to_vec()));
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

/// The project has all the recorded files, and none of them is half known.
#[test]
fn every_file_is_run_or_listed() {
    assert_eq!(OWN_COPY.files.len(), 23);
    let traces: usize = OWN_COPY.files.iter().map(|file| file.traces).sum();
    assert_eq!(traces, 446);
    for file in &OWN_COPY.files {
        let covered = file.covered_traces();
        let of_two = if file.file == NPM { 6 } else { file.traces };
        assert!(covered == 0 || covered == of_two, "{}", file.file);
        assert_eq!(covered == 0, file.ops == 0, "{}", file.file);
    }
}

/// What was compared is what the headers declare.
#[test]
fn no_operation_is_skipped() {
    for file in OWN_COPY.files.iter().filter(|f| f.covered_traces() > 0) {
        let text = tollgate_replay::read_text(&own_copy().join(&file.file));
        let text = text.expect("a recorded file");
        let (mut traces, mut declared, mut ops, mut is_known) = (0, 0, 0, false);
        for line in text.lines() {
            match Line::parse(line).expect("a recorded line") {
                Line::Header(header) => {
                    is_known = sources::all().iter().any(|source| source.knows(&header));
                    traces += usize::from(is_known);
                    declared += if is_known { header.ops } else { 0 };
                }
                Line::Op(_) => ops += usize::from(is_known),
            }
        }
        assert_eq!(file.covered_traces(), traces);
        assert_eq!(file.ops as u64, declared);
        assert_eq!(file.ops, ops);
        // At least the decision and one value beside it.
        assert!(file.fields >= 2 * file.ops);
    }
}
