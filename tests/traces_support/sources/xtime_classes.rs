//! How x/time/rate differs where there is a bucket here.

use tollgate_replay::{Class, Direction};

/// A wait is cut to whole nanoseconds, so that what is a part of one early is admitted, and leaves less than
/// nothing. Ours are rounded up. The admission is then made here too, for the nanosecond at which it is due. (A
/// whole burst is taken of a bucket that has been full for a part of a nanosecond then, which is lost; that is
/// taken over.)
pub(super) static CUT: Class = Class {
    name: "waits are cut to whole nanoseconds",
    directions: &[Direction::TheyAdmitMore, Direction::OtherValue],
};

/// An older caller gets the tokens of a later one, and takes the limiter back to its own time with it. We
/// count at the latest time seen.
pub(super) static WENT_BACK: Class = Class {
    name: "time went back: the time since is credited twice",
    directions: &[Direction::TheyAdmitMore, Direction::OtherValue],
};

/// Ours counts in units: quarters of a nanosecond where the rate is no simple fraction of one, and what is carried
/// over to another rate is cut to its units. It decides no more than a nanosecond late, and never early; the level that
/// it tells may be a unit, a quarter of a nanosecond at most, above what it decides by.
pub(super) static ROUNDED: Class = Class {
    name: "levels are rounded to a part of a nanosecond here",
    directions: &[Direction::TheyAdmitMore, Direction::OtherValue],
};

/// A reservation that is neither the last in line nor alone: what was not reserved after it comes back there, while those who come
/// after it wait for their time all the same. Here nothing comes back.
pub(super) static MIDDLE: Class = Class {
    name: "one in the middle of the line is cancelled, and something comes back",
    directions: &[Direction::OtherValue],
};

/// Past its time nothing comes back there; here, when nobody waits, what the clock has not refilled yet.
pub(super) static LATE: Class = Class {
    name: "cancelled past its time, nothing comes back",
    directions: &[Direction::OtherValue],
};

/// Its last event is that of whoever came last, also where that is sooner than an earlier one's.
pub(super) static MORE: Class = Class {
    name: "cancelled, more comes back than was reserved",
    directions: &[Direction::OtherValue],
};

/// It finds the one before the last by the time, which was cut or is past, and takes what was cancelled for
/// reserved still.
pub(super) static LESS: Class = Class {
    name: "cancelled, and what was cancelled before counts as reserved still",
    directions: &[Direction::OtherValue],
};

/// The word was carried over to another quota, and where the reservation stands in it is not known any more.
pub(super) static STALE: Class = Class {
    name: "reserved before the quota changed and cancelled since, it comes back",
    directions: &[Direction::OtherValue],
};
