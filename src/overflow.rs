/// What becomes of a new key when there is no room for it: all places where it could be are other
/// keys', none of which is idle.
///
/// Whichever it is, the statistics count it.
///
/// ```
/// use tollgate::{Keyed, Overflow, Quota, TokenBucket};
///
/// # fn main() -> Result<(), tollgate::ConfigError> {
/// let bucket = TokenBucket::new(Quota::per_hour(10))?;
/// let limiter = Keyed::new(bucket, 1000)?.with_overflow(Overflow::Deny);
/// assert_eq!(limiter.overflow(), Overflow::Deny);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Overflow {
    /// It takes the place of the key that is nearest to idle, of those in reach. That one is fresh
    /// again when it comes back: it allows that key one burst more.
    #[default]
    Evict,
    /// It is denied ([`Denied::NoRoom`](crate::Denied::NoRoom)), whatever is asked. A verb that
    /// can't be denied is answered as for a fresh key, takes nothing, and records nothing.
    Deny,
    /// It is decided on as a fresh key is, each time, and not recorded.
    Admit,
}
