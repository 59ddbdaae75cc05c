/// The treatment of a new key if the table has no slot for it: every slot that it may use holds
/// another key, and none of those keys is idle.
///
/// The statistics count these cases.
///
/// ```
/// use tollgate::keyed::Overflow;
/// use tollgate::{Keyed, Quota};
///
/// # fn main() -> Result<(), tollgate::error::LimiterError> {
/// let limiter = Keyed::token_bucket(Quota::per_hour(10), 1000)?.with_overflow(Overflow::Deny);
/// assert_eq!(limiter.overflow(), Overflow::Deny);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Overflow {
    /// The new key replaces the key in one of these slots. The replaced key is fresh when it
    /// returns, and so may get one more burst.
    ///
    /// A key that was granted only once is replaced before a *protected* key, which was granted
    /// again after it entered. A banned key is replaced last. Otherwise the key that has spent the
    /// least of its burst is replaced first. Of keys that have spent about the same, the newest is
    /// replaced first. So a flood of new keys mostly replaces its own keys; docs/KEYS.md has the
    /// exceptions. The statistics count replaced protected keys separately (`evicted_protected`).
    #[default]
    Evict,
    /// Every request of the new key is denied ([`Denied::NoRoom`](crate::Denied::NoRoom)). Methods
    /// that can't be denied, such as `charge`, answer as for a fresh key, but take and record
    /// nothing.
    Deny,
    /// Every request of the new key is decided as for a fresh key, and is not recorded.
    Admit,
}
