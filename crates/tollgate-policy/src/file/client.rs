//! How a program finds the client of a request.

use ipnet::IpNet;

use super::At;

/// How a program finds the client of a request, and how it reads paths: the table `[client]`.
///
/// A policy gets a client's address from the program, so the program reads these settings where it
/// reads requests. The layers of a policy in `tollgate-tower` do, and `ClientAddress::of_policy` of
/// `tollgate-http` makes from them what finds an address. What a file says takes precedence over
/// what the program says.
///
/// ```
/// use tollgate_policy::Policy;
///
/// let text = "[client]\ntrust = '10.0.0.0/28'\nheader = 'X-Forwarded-For'";
/// let policy = Policy::from_toml(text)?;
/// let header = policy.client().header.as_ref().unwrap();
/// assert_eq!(header.as_str(), "x-forwarded-for");
/// # Ok::<(), tollgate_policy::Problems>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientSettings {
    /// The networks of trusted proxies. An empty list trusts none, also if the program does.
    pub trust: Option<Vec<At<IpNet>>>,
    /// How many proxies are trusted. With `trust` too, both must hold.
    pub hops: Option<At<u8>>,
    /// The header that trusted proxies write, in lower case: `x-forwarded-for`, `forwarded`, or one
    /// that has a single address.
    pub header: Option<At<String>>,
    /// In which form rules see a path.
    pub path: Option<SeenPath>,
}

impl ClientSettings {
    /// Returns whether the file says how an address is found: otherwise the program does.
    #[must_use]
    pub const fn has_address(&self) -> bool {
        self.trust.is_some() || self.hops.is_some()
    }
}

/// In which form rules see the path of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SeenPath {
    /// Escapes are decoded, apart from those that would make a path ambiguous.
    Decoded,
    /// As the client sent it.
    AsSent,
    /// Decoded, and then resolved: without `.` and `..`, without parameters, with single slashes.
    Normalized,
}
