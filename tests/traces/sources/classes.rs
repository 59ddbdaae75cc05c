//! Every accepted difference: its name, and the directions in which it may show. docs/TRACES.md lists
//! them; the `class` function of each adapter has the exact condition.

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
    // Windows that are opened by their first hit.
    /// Our word counts to a little more than twice the limit, theirs counts on. Either is full.
    COUNTS_ON: "theirs counts refused hits beyond the maximum of our word" in OtherValue;
    /// Our window begins at the next quantum, a few nanoseconds, and so ends up to two of them
    /// after theirs. A call at the very end finds a new window there, and the last nanoseconds of
    /// the old one here. What they begin with is then taken over.
    END: "our window ends up to two quanta later" in TheyAdmitMore, OtherValue;
    // throttled.
    /// More than the capacity is answered with a full limiter, whatever the state: `remaining` is
    /// the capacity and `reset_after` 0. We answer with the limiter as it is. The decision, and the
    /// TAT, are the same.
    ABOVE_CAPACITY: "theirs reports a full limiter to a request above the capacity" in OtherValue;
    // Guava.
    #[cfg(feature = "wide")]
    /// Of none or less they make an error. Of none here, nothing is taken; less than none can't be
    /// asked for.
    NO_PERMITS: "a request for no permits: theirs fails, ours takes nothing" in OtherValue;
    #[cfg(feature = "wide")]
    /// With a warm-up of 0 they divide nothing by nothing: what is stored is no number, and from
    /// then on each call is free, until the rate is set. Here a permit costs an interval.
    FREE_FOR_EVER:
        "a warm-up of 0: theirs stops limiting, ours keeps the steady rate" in TheyAdmitMore, OtherValue;
    // limits' fixed window.
    /// A hit of 0 where there is no window opens one there, in which nothing is counted and which
    /// the next hit opens anew. Here 0 changes nothing.
    OPENED_BY_0: "theirs opens a window at a hit of 0" in OtherValue;
    // limits' moving window.
    /// What is exactly a window old counts, but for a hit alone. What it has admitted is then taken
    /// over.
    STILL_COUNTS: "theirs still counts a hit that is exactly a window old" in TheyAdmitLess;
    /// It looks for the last hit before the first that is older, and finds none: the last in its
    /// list is the first hit that it remembers, and it remembers all.
    FIRST_EVER:
        "an empty window: theirs computes the reset from the first hit ever"
            in TheyAdmitLess, OtherValue;
    // limits' sliding window.
    /// The estimate is a whole number of permits, of which its doubles come to a little less or
    /// more.
    SLIDING_TIE: "doubles round at a tie" in TheyAdmitMore, OtherValue;
    /// A part of a microsecond is lost in its time, and so its reset is rounded to another whole
    /// one.
    ROUNDED_RESET: "doubles round the reset to another microsecond" in OtherValue;
    /// What is left of the window is taken modulo its length. At its very beginning that is
    /// nothing: the reset is now, where nothing falls.
    AT_THE_BEGINNING: "theirs reports a reset of now at the start of a window" in OtherValue;
    // nginx.
    /// It cuts what it takes off the excess to whole thousandths at each request that it admits: so
    /// it has a little more than the rate leaves. What was cut at the last one is known, and by
    /// that much, less than a thousandth, it may have more at the next. Whole requests a second
    /// make whole thousandths in a millisecond, of which nothing is cut.
    DRIFT: "theirs truncates to thousandths at each admitted request" in TheyAdmitLess, OtherValue;
    /// Where a permit takes no whole nanoseconds, the last of a full burst is there a nanosecond
    /// late: it has no such time between its milliseconds. The excess is the same.
    LATE: "ours is a nanosecond late: the interval is not a whole number" in TheyAdmitMore;
    // limiter (npm).
    /// The wait was within a nanosecond of whole milliseconds, and both agree on the content. We
    /// decide exactly.
    NPM_TIE: "doubles round at a tie" in OtherValue;
    // rate-limiter-flexible.
    /// A window in which nothing is counted, or less than nothing, stays open there: a reward may
    /// be more than was taken, and a hit of 0 opens one. Here nothing taken is no window, and a
    /// fresh limiter is full. What they print is taken over as far as it can be: a count above 0,
    /// in their window.
    NOTHING_TAKEN:
        "theirs keeps a window open at a count of zero or below"
            in TheyAdmitMore, OtherValue;
    /// Told to spread the hits evenly, it delays all but a window's first, and says what is left of
    /// the window less the delay. A fixed window delays nobody.
    SPREADS: "theirs spreads hits evenly with delays" in OtherValue;
    // The token buckets on redis.
    /// They keep the level when time goes back, and the earlier time with it, so that the same
    /// seconds are credited a second time. We count at the latest time seen, and are short by at
    /// most what went back. The class is found at the call with which time goes back: theirs must
    /// be the level from before, and ours below it by no more than that. The recorded level is then
    /// taken over, so that the second credit is nothing that differs any more.
    WENT_BACK: "time went back: theirs credits the same seconds twice" in TheyAdmitMore, OtherValue;
    /// The level was within a millionth of a permit of what was asked for (or of the whole permits
    /// that are reported), and both agree on the level. We decide exactly.
    TIE: "doubles round at a tie" in TheyAdmitMore, TheyAdmitLess, OtherValue;
    /// The scripts' keys expire after `2 * capacity / rate` seconds, rounded down. Where that is 0
    /// Spring's stores nothing, and every call finds a full bucket.
    UNLIMITED: "an expiry of 0: theirs never limits, ours does" in TheyAdmitMore, OtherValue;
    /// There ShenYu's fails, and what calls it then admits everything. We decide.
    FAILS_OPEN:
        "an expiry of 0: their script fails, which admits everything" in TheyAdmitMore, OtherValue;
    /// Spring's bucket of capacity 0 refuses everything but `n` = 0; here it is refused when it is
    /// built.
    NO_CAPACITY: "a capacity of 0: our constructor refuses it" in OtherValue;
    // ShenYu's concurrent limit.
    /// An id that is in the set and comes again finds a place only if there is one, and then takes
    /// none. Ours are two who are inside; the first is then let go.
    TAKES_NONE: "a repeated id: theirs needs a free place but does not take it" in OtherValue;
    // ShenYu's leaky bucket.
    /// Where time goes back they keep the level, and the earlier time with it once they admit, so
    /// that the same seconds leak a second time. We count at the latest time seen, where there is
    /// more in the bucket by at most what went back. The recorded level is then taken over.
    LEAKS_TWICE: "time went back: theirs leaks for the same seconds twice" in TheyAdmitMore, OtherValue;
    // ShenYu's sliding window.
    /// What has left the window is counted by one call more.
    COUNTS_FIRST: "theirs counts before it removes expired entries" in TheyAdmitMore, TheyAdmitLess, OtherValue;
    /// However many are asked for, it takes one. What it has taken is then taken over.
    TAKES_ONE: "theirs takes one permit for a request for several" in TheyAdmitMore, OtherValue;
    // token-bucket (PyPI).
    /// The level was within a millionth of a permit of what was asked for, and both agree on the
    /// level. We decide exactly.
    PYPI_TIE: "doubles round at a tie" in TheyAdmitMore, TheyAdmitLess;
    // x/time/rate.
    /// A wait is cut to whole nanoseconds, so that what is a part of one early is admitted, and
    /// leaves less than nothing. Ours are rounded up. The admission is then made here too, for the
    /// nanosecond at which it is due. (A whole burst is taken of a bucket that has been full for a
    /// part of a nanosecond then, which is lost; that is taken over.)
    CUT: "theirs truncates waits to whole nanoseconds" in TheyAdmitMore, OtherValue;
    /// An older caller gets the tokens of a later one, and takes the limiter back to its own time
    /// with it. We count at the latest time seen.
    CREDITED_TWICE: "time went back: theirs credits the same time twice" in TheyAdmitMore, OtherValue;
    /// Ours counts in units: quarters of a nanosecond where the rate is no simple fraction of one,
    /// and what is carried over to another rate is cut to its units. It decides no more than a
    /// nanosecond late, and never early; the level that it tells may be a unit, a quarter of a
    /// nanosecond at most, above what it decides by.
    ROUNDED: "ours rounds levels to a fraction of a nanosecond" in TheyAdmitMore, OtherValue;
    /// A reservation that is neither the last in line nor alone: what was not reserved after it
    /// comes back there, while those who come after it wait for their time all the same. Here
    /// nothing comes back.
    MIDDLE: "cancelled in the middle of the queue: theirs returns tokens" in OtherValue;
    /// Past its time nothing comes back there; here, when nobody waits, what the clock has not
    /// refilled yet.
    PAST_ITS_TIME: "cancelled after its time: theirs returns nothing" in OtherValue;
    /// Its last event is that of whoever came last, also where that is sooner than an earlier
    /// one's.
    MORE: "cancelled: theirs returns more than was reserved" in OtherValue;
    /// It finds the one before the last by the time, which was cut or is past, and takes what was
    /// cancelled for reserved still.
    LESS: "cancelled: theirs still counts an earlier cancelled reservation" in OtherValue;
    /// The word was carried over to another quota, and where the reservation stands in it is not
    /// known any more.
    STALE: "cancelled after a change of the quota: theirs returns tokens" in OtherValue;
    // x/time/rate, where there is no bucket here.
    ZERO: "a limit of 0: our constructor refuses it" in OtherValue;
    /// 0.3.0 counts the burst itself down, and never up again.
    ONCE: "a limit of 0: theirs grants the burst once, our constructor refuses it" in OtherValue;
    TOO_HIGH: "an infinite limit: our constructor refuses it" in OtherValue;
    TOO_LOW: "less than a token a year: our constructor refuses it" in OtherValue;
    /// 0.3.0 turns a wait of more than 292 years into one in the past, and admits.
    OVERFLOWS:
        "less than a token a year: their wait overflows into the past, our constructor refuses it"
            in OtherValue;
    NO_BURST: "a burst of 0: our constructor refuses it" in OtherValue;
}
