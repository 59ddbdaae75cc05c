/// Says what happens to a new key when there is no room for it: all places that were looked at
/// belong to other keys, none of which is idle.
///
/// In each case the statistics count it.
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
    /// It replaces one of the keys in reach. That key is fresh when it comes back, and may have one
    /// burst more.
    ///
    /// A key that was granted something once is replaced before one that was granted something
    /// again after it came, which is *protected*; of these one that has spent less of its burst,
    /// and of those that have spent about as much the newest. A flood of new keys so replaces its
    /// own keys, and not those that had spent their burst before and were used twice. The
    /// statistics count protected keys apart (`evicted_protected`).
    #[default]
    Evict,
    /// Each request for it is denied ([`Denied::NoRoom`](crate::Denied::NoRoom)). A verb that can't
    /// be denied is answered as for a fresh key, takes nothing, and records nothing.
    Deny,
    /// Each request for it is decided as for a fresh key, and not recorded.
    Admit,
}
