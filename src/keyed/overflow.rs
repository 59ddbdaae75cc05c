/// What becomes of a new key when all places where it could be hold other keys, none of which is idle.
///
/// Whichever it is, [`stats`](super::Keyed::stats) counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Overflow {
    /// It takes the place of the key that is nearest to idle. That one is fresh again when it comes back: it
    /// allows that key one burst more.
    #[default]
    Evict,
    /// It is denied ([`Denied::NoRoom`](crate::Denied::NoRoom)), whatever is asked. What can't be denied, such as a
    /// charge, is answered as for a fresh key, and not recorded.
    Deny,
    /// It is decided on as a fresh key is, each time, and not recorded.
    Admit,
}
