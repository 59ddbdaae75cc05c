/// What becomes of a new key when there is room for no more, and no idle key is in reach.
///
/// Whichever it is, [`stats`](super::KeyedMap::stats) counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Overflow {
    /// Of the keys in reach the one that is nearest to idle goes. It is fresh when it comes back: that allows it
    /// one burst more.
    #[default]
    Evict,
    /// The new key is denied ([`Denied::NoRoom`](crate::Denied::NoRoom)), whatever it asks for. A verb that can't
    /// be denied is answered as a fresh key is, and nothing is recorded.
    Deny,
    /// The new key is answered as a fresh key is, each time, and nothing is recorded.
    Admit,
}
