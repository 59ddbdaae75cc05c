//! Every accepted difference: its name, and the directions in which it may occur.
//! docs/dev/TRACES.md lists them. The `class` function of each adapter has the exact condition.
//!
//! In the names "theirs" is the recorded limiter and "ours" is tollgate's.

use tollgate_replay::{Class, Direction};

macro_rules! classes {
    ($($(#[$about:meta])* $name:ident: $text:literal in $($direction:ident),+;)+) => {$(
        $(#[$about])*
        pub(super) static $name: Class = Class {
            name: $text,
            directions: &[$(Direction::$direction),+],
        };
    )+};
}

classes! {
    // Windows that the first hit opens.
    /// Our word counts to a little more than twice the limit. Theirs has no maximum. Both are full.
    COUNTS_ON: "theirs counts refused hits beyond the maximum of our word" in OtherValue;
    /// Our window begins at the next quantum, a few nanoseconds later, and so ends up to two quanta
    /// after theirs. A call at the very end finds a new window there, and the last nanoseconds of
    /// the old one here. Our limiter then adopts their new window.
    END: "our window ends up to two quanta later" in TheyAdmitMore, OtherValue;
    // throttled.
    /// A request above the capacity gets the answer of a full limiter in any state: `remaining` is
    /// the capacity and `reset_after` is 0. Ours answers with its actual state. The decision and
    /// the TAT are the same.
    ABOVE_CAPACITY: "theirs reports a full limiter to a request above the capacity" in OtherValue;
    // limits' fixed window.
    /// In theirs, a hit of 0 opens a window if none is open. Nothing is counted in that window, and
    /// the next hit opens a new one. In ours, 0 changes nothing.
    OPENED_BY_0: "theirs opens a window at a hit of 0" in OtherValue;
    // limits' moving window.
    /// In theirs, a hit still counts entries that are exactly a window old. Other calls do not. Our
    /// limiter then adopts the entries that theirs admitted.
    STILL_COUNTS: "theirs still counts a hit that is exactly a window old" in TheyAdmitLess;
    /// Theirs looks for the oldest hit that is still in the window, and finds none. It then uses
    /// the last entry of its list, which is the first hit ever, since the list keeps all hits.
    FIRST_EVER:
        "an empty window: theirs computes the reset from the first hit ever"
            in TheyAdmitLess, OtherValue;
    // limits' sliding window.
    /// The estimate is a whole number of permits, and their doubles are slightly below or above it.
    SLIDING_TIE: "doubles round at a tie" in TheyAdmitMore, OtherValue;
    /// Their double loses a fraction of a microsecond of the time, so the reset is rounded to
    /// another microsecond.
    ROUNDED_RESET: "doubles round the reset to another microsecond" in OtherValue;
    /// They compute the remaining time of the window modulo its length. At the start of a window
    /// that is 0, so the reset is now, although the estimate does not fall then.
    AT_THE_BEGINNING: "theirs reports a reset of now at the start of a window" in OtherValue;
    // nginx.
    /// At each admitted request, it truncates the decrease of the excess to whole thousandths, so
    /// its excess is slightly higher than the rate allows. The truncated part of the last request
    /// is known. The next excess may be higher by at most that part, which is less than a
    /// thousandth. At whole requests a second a millisecond makes whole thousandths, and nothing is
    /// truncated.
    DRIFT: "theirs truncates to thousandths at each admitted request" in TheyAdmitLess, OtherValue;
    // limiter (npm).
    /// The wait was within a nanosecond of whole milliseconds, and both agree on the content. Ours
    /// decides exactly.
    NPM_TIE: "doubles round at a tie" in OtherValue;
    // rate-limiter-flexible.
    /// A window with a count of 0 or below stays open there: a reward may exceed what was taken,
    /// and a hit of 0 opens a window. Ours has no window without permits taken, and a fresh limiter
    /// is full. Our limiter adopts the printed state as far as possible: a positive count in their
    /// window.
    NOTHING_TAKEN:
        "theirs keeps a window open at a count of zero or below"
            in TheyAdmitMore, OtherValue;
    /// When configured to spread hits evenly, it delays every hit of a window except the first, and
    /// reports the rest of the window minus the delay. Our fixed window never delays.
    SPREADS: "theirs spreads hits evenly with delays" in OtherValue;
    // The token buckets on redis.
    /// When time goes back they keep the level but store the earlier time, so they credit the same
    /// seconds again. Ours counts at the latest time seen, and is lower by at most the difference.
    /// The class applies to the call at which time goes back: their level must be the one from
    /// before, and ours below it by no more than the difference. Our limiter then adopts the
    /// recorded level, so the second credit is not another difference.
    WENT_BACK: "time went back: theirs credits the same seconds twice" in TheyAdmitMore, OtherValue;
    /// The level differed from the request (or from the reported whole permits) by less than a
    /// millionth of a permit, and both agree on the level. Ours decides exactly.
    TIE: "doubles round at a tie" in TheyAdmitMore, TheyAdmitLess, OtherValue;
    /// The scripts' keys expire after `2 * capacity / rate` seconds, rounded down. If that is 0,
    /// Spring's script stores nothing, and every call finds a full bucket.
    UNLIMITED: "an expiry of 0: theirs never limits, ours does" in TheyAdmitMore, OtherValue;
    /// ShenYu's script fails in that case, and its caller then admits everything. Ours decides.
    FAILS_OPEN:
        "an expiry of 0: their script fails, which admits everything" in TheyAdmitMore, OtherValue;
    /// Spring's bucket of capacity 0 refuses everything but `n` = 0. Our constructor refuses such a
    /// bucket.
    NO_CAPACITY: "a capacity of 0: our constructor refuses it" in OtherValue;
    // ShenYu's concurrent limit.
    /// An id that is already in the set is admitted only if there is a free place, but takes none.
    /// Ours counts it twice, and then releases the first.
    TAKES_NONE: "a repeated id: theirs needs a free place but does not take it" in OtherValue;
    // ShenYu's leaky bucket.
    /// When time goes back they keep the level. Once they admit they also store the earlier time,
    /// so the same seconds leak again. Ours counts at the latest time seen, and its level is higher
    /// by at most the difference. Our limiter then adopts the recorded level.
    LEAKS_TWICE:
        "time went back: theirs leaks for the same seconds twice" in TheyAdmitMore, OtherValue;
    // ShenYu's sliding window.
    /// Expired entries are counted for one more call.
    COUNTS_FIRST:
        "theirs counts before it removes expired entries"
            in TheyAdmitMore, TheyAdmitLess, OtherValue;
    /// Theirs takes one permit for any request. Our limiter then takes as many as theirs.
    TAKES_ONE: "theirs takes one permit for a request for several" in TheyAdmitMore, OtherValue;
    // token-bucket (PyPI).
    /// The level was within a millionth of a permit of the request, and both agree on the level.
    /// Ours decides exactly.
    PYPI_TIE: "doubles round at a tie" in TheyAdmitMore, TheyAdmitLess;
    // x/time/rate.
    /// A wait is truncated to whole nanoseconds. So a request that is a fraction of a nanosecond
    /// early is admitted, and the level goes below zero. Ours rounds waits up. Our limiter then
    /// makes the admission too, for the nanosecond at which it is due. (A whole burst is then taken
    /// from a bucket that has been full for a fraction of a nanosecond. That fraction is lost, and
    /// our limiter adopts their level.)
    CUT: "theirs truncates waits to whole nanoseconds" in TheyAdmitMore, OtherValue;
    /// An older caller gets the tokens of a later one, and sets the limiter back to its own time.
    /// Ours counts at the latest time seen.
    CREDITED_TWICE:
        "time went back: theirs credits the same time twice" in TheyAdmitMore, OtherValue;
    /// Ours counts in units: quarters of a nanosecond if the rate is not a simple fraction, and a
    /// level carried over to another rate is truncated to its units. It decides less than one unit
    /// early, and at most a nanosecond late.
    ROUNDED: "ours rounds levels to a fraction of a nanosecond" in TheyAdmitMore, OtherValue;
    /// A reservation that is neither the last nor the only one: theirs returns the tokens that were
    /// not reserved after it, although later callers still wait for their original time. Ours
    /// returns nothing.
    MIDDLE: "cancelled in the middle of the queue: theirs returns tokens" in OtherValue;
    /// Theirs returns nothing after the reservation's time. If no caller waits, ours returns what
    /// the clock has not refilled yet.
    PAST_ITS_TIME: "cancelled after its time: theirs returns nothing" in OtherValue;
    /// Theirs uses the event of the last caller as the last event, even if an earlier caller's
    /// event is later.
    MORE: "cancelled: theirs returns more than was reserved" in OtherValue;
    /// Theirs finds the event before the last one by its time. If that time was truncated or has
    /// passed, it does not find the event, and counts cancelled tokens as reserved.
    LESS: "cancelled: theirs still counts an earlier cancelled reservation" in OtherValue;
    /// The word was carried over to another quota, so the reservation's position in it is unknown.
    STALE: "cancelled after a change of the quota: theirs returns tokens" in OtherValue;
    // x/time/rate, with limits that our constructor refuses.
    ZERO: "a limit of 0: our constructor refuses it" in OtherValue;
    /// Version 0.3.0 decrements the burst itself, and never restores it.
    ONCE: "a limit of 0: theirs grants the burst once, our constructor refuses it" in OtherValue;
    TOO_HIGH: "an infinite limit: our constructor refuses it" in OtherValue;
    TOO_LOW: "less than a token a year: our constructor refuses it" in OtherValue;
    /// Version 0.3.0 turns a wait of more than 292 years into one in the past, and admits.
    OVERFLOWS:
        "less than a token a year: their wait overflows into the past, our constructor refuses it"
            in OtherValue;
    NO_BURST: "a burst of 0: our constructor refuses it" in OtherValue;
}
