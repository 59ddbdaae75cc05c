//! The list of metrics: each has one name, kind and meaning, whatever limiter has it.

use core::fmt;

/// What has some of the metrics.
pub trait MetricSource {
    /// The value of a metric, if it has this one.
    fn value(&self, metric: Metric) -> Option<Value>;
}

/// A number that is whole, or is not.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    Whole(u64),
    Real(f64),
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(f),
            Self::Real(value) => value.fmt(f),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only grows.
    Counter,
    Gauge,
}

macro_rules! metrics {
    ($($metric:ident $name:literal $kind:ident $help:literal)*) => {
        /// A metric.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Metric {$($metric),*}

        impl Metric {
            pub(super) const ALL: &[Self] = &[$(Self::$metric),*];

            /// Its name without prefix, its kind, and what it means.
            pub(super) const fn about(self) -> (&'static str, Kind, &'static str) {
                match self {
                    $(Self::$metric => ($name, Kind::$kind, $help)),*
                }
            }
        }
    };
}

metrics! {
    Granted "granted_total" Counter "Requests that were granted."
    Permits "permits_total" Counter "Permits that granted requests got."
    Denied "denied_total" Counter "Requests that were denied."
    Returned "returned_total" Counter "Permits that came back."
    Charged "charged_total" Counter "Permits that were charged."
    Tracked "tracked" Gauge "Keys in the table."
    Idle "idle" Gauge "Keys in the table that are as good as fresh."
    Inserted "inserted_total" Counter "Keys that were put into the table."
    Expired "expired_total" Counter "Keys that left because they were idle."
    Evicted "evicted_total" Counter "Keys that left although they were not idle."
    EvictedProtected "evicted_protected_total" Counter "Evicted keys that were protected."
    Removed "removed_total" Counter "Keys that were removed."
    NoRoom "no_room_total" Counter "How often there was no room for a key."
    Inside "inside" Gauge "How much is inside, by weight."
    Peak "peak" Gauge "The most that was inside at any moment, by weight."
    Limit "limit" Gauge "How much can be inside, by weight."
    Waiting "waiting" Gauge "Callers that wait."
    WaitingPermits "waiting_permits" Gauge "Permits that are waited for."
    LongestWait "longest_wait_seconds" Gauge "The longest time that a caller waits."
    Lent "lent" Gauge "Permits that leases can hold now."
    MaxLent "max_lent" Gauge "The most permits that leases can hold together."
    Rate "rate" Gauge "Permits a second."
    Stored "stored" Gauge "Permits that are stored."
    MaxStored "max_stored" Gauge "The most permits that can be stored."
}
