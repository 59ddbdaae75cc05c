/// What happens to a new key when there is no room for it: every slot that it may use holds another
/// key, and none of those is idle.
///
/// The statistics count each such case.
///
/// ```
/// # #[cfg(feature = "keyed")]
/// use tollgate::{Keyed, Overflow, Quota};
///
/// # #[cfg(feature = "keyed")]
/// # fn main() -> Result<(), tollgate::ConfigError> {
/// let limiter = Keyed::token_bucket(Quota::per_hour(10), 1000)?.with_overflow(Overflow::Deny);
/// assert_eq!(limiter.overflow(), Overflow::Deny);
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "keyed"))]
/// # fn main() {}
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Overflow {
    /// The new key replaces one of the keys that it competes with. The replaced key is fresh when
    /// it returns, and so may get one more burst.
    ///
    /// A key that was granted only once is replaced before a *protected* key, which was granted
    /// again after it entered. Among equals, the key that has spent less of its burst goes first,
    /// and among keys that have spent about the same, the newest. So a flood of new keys replaces
    /// its own keys, not keys that had already spent their burst and were used twice. The
    /// statistics count replaced protected keys separately (`evicted_protected`).
    #[default]
    Evict,
    /// Every request of the new key is denied ([`Denied::NoRoom`](crate::Denied::NoRoom)). A verb
    /// that can't be denied answers as for a fresh key, but takes and records nothing.
    Deny,
    /// Every request of the new key is decided as for a fresh key, and not recorded.
    Admit,
}
