//! The list of metrics. Each has one name, kind and meaning for all limiters.

use core::fmt;

/// A source of metrics for [`write_prometheus`](super::write_prometheus): the statistics in this
/// module, [`Concurrency`](crate::Concurrency), [`Line`](crate::compose::Line),
/// [`Leases`](crate::Leases), and limiters of your own.
///
/// ```
/// use tollgate::stats::{Metric, Metrics, Value, write_prometheus};
///
/// struct Line {
///     waiting: u64,
/// }
///
/// impl Metrics for Line {
///     fn value(&self, metric: Metric) -> Option<Value> {
///         match metric {
///             Metric::Waiting => Some(self.waiting.into()),
///             _ => None,
///         }
///     }
/// }
///
/// # fn main() -> Result<(), tollgate::stats::MetricsError> {
/// let mut text = String::new();
/// write_prometheus(&mut text, "shop", &[(&[], &Line { waiting: 7 })])?;
/// assert!(text.ends_with("\nshop_waiting 7\n"));
/// # Ok(())
/// # }
/// ```
pub trait Metrics {
    /// Returns the value of a metric, or `None` if the source does not have it.
    fn value(&self, metric: Metric) -> Option<Value>;
}

/// The value of a metric: an integer or a real number.
///
/// ```
/// use tollgate::stats::Value;
///
/// assert_eq!(Value::from(7), Value::Whole(7));
/// assert_eq!(Value::from(0.5).to_string(), "0.5");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// An integer, such as a number of requests.
    Whole(u64),
    /// A real number, such as a rate.
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

macro_rules! is_counter {
    (Counter) => {
        true
    };
    (Gauge) => {
        false
    };
}

macro_rules! metrics {
    ($($metric:ident $name:literal $kind:ident $help:literal)*) => {
        /// A metric. It has one name, kind and meaning for all limiters.
        ///
        /// For a monitoring system that is not Prometheus, read all metrics of a source:
        ///
        /// ```
        /// use tollgate::stats::{Metric, Metrics};
        /// use tollgate::{Keyed, Quota};
        ///
        /// let stats = Keyed::token_bucket(Quota::per_second(5), 1000)?.stats();
        /// for metric in Metric::ALL {
        ///     if let Some(value) = stats.value(*metric) {
        ///         println!("{} {value}: {}", metric.name(), metric.help());
        ///     }
        /// }
        /// # assert!(!Metric::Slots.is_counter() && Metric::Evicted.is_counter());
        /// # Ok::<(), tollgate::error::LimiterError>(())
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Metric {$(
            #[doc = $help]
            $metric,
        )*}

        impl Metric {
            /// All metrics.
            pub const ALL: &[Self] = &[$(Self::$metric),*];

            /// Returns the metric's name, without a prefix.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$metric => $name),*
                }
            }

            /// Returns the metric's description: one sentence.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self {
                    $(Self::$metric => $help),*
                }
            }

            /// Returns whether the metric only increases. Any other can also decrease.
            #[must_use]
            pub const fn is_counter(self) -> bool {
                match self {
                    $(Self::$metric => is_counter!($kind)),*
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
    MissingKey "missing_key_total" Counter "Requests that were refused because they lack a key."
    Slots "slots" Gauge "Slots of the table, each for one key."
    Tracked "tracked" Gauge "Keys in the table."
    Idle "idle" Gauge "Keys in the table that are idle."
    Inserted "inserted_total" Counter "Keys that were inserted into the table."
    Expired "expired_total" Counter "Idle keys that left the table."
    Evicted "evicted_total" Counter "Keys that left the table although they were not idle."
    EvictedProtected "evicted_protected_total" Counter "Evicted keys that were protected."
    Removed "removed_total" Counter "Keys that were removed."
    NoRoom "no_room_total" Counter "Requests whose key found no room in the table."
    Inside "inside" Gauge "Total weight of the guards that are held."
    Peak "peak" Gauge "Largest total weight of guards that were held at once."
    Limit "limit" Gauge "Largest total weight of guards that can be held at once."
    Waiting "waiting" Gauge "Callers that are waiting."
    WaitingPermits "waiting_permits" Gauge "Permits that callers are waiting for."
    Lent "lent" Gauge "Permits that the live leases can hold."
    MaxLent "max_lent" Gauge "Largest number of permits that leases can hold together."
    LeaseMessages "lease_messages_total" Counter "Messages to the server about leases."
    LeaseTrips "lease_trips_total" Counter "Round trips for them: messages that are sent together."
    LeaseDraws "lease_draws_total" Counter "Answers of the server that brought permits."
    LeaseDrawn "lease_drawn_total" Counter "Permits that were drawn from the server."
    LeaseReturned "lease_returned_total" Counter "Drawn permits that were given back unspent."
    LeaseLapsed "lease_lapsed_total" Counter "Drawn permits that could not be spent in time."
    LeaseHeld "lease_held" Gauge "Drawn permits that can still be spent."
    LeaseAllowed "lease_allowed_total" Counter "Permits that were granted of allowances."
    LeaseKeys "lease_keys" Gauge "Keys that have a lease."
    Rate "rate" Gauge "Permits a second."
    Stored "stored" Gauge "Permits that are stored."
    MaxStored "max_stored" Gauge "Largest number of permits that can be stored."
}
