//! What a policy's file says of clients.

use http::HeaderName;
use tollgate_policy::file::{ClientSettings, SeenPath};

use super::client::ClientAddress;
use crate::facts::PathForm;

impl ClientAddress {
    /// Returns how the client's address is found if a policy's file says it, in its table
    /// `[client]`.
    ///
    /// ```
    /// use tollgate_http::ClientAddress;
    /// use tollgate_policy::Policy;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let text = "[client]\ntrust = ['10.0.0.0/28', '10.0.1.7']\nheader = 'x-forwarded-for'";
    /// let policy = Policy::from_toml(text)?;
    /// let address = ClientAddress::peer().trust("10.0.0.0/28")?.trust("10.0.1.7")?;
    /// assert_eq!(ClientAddress::of_policy(policy.client()), Some(address.x_forwarded_for()));
    ///
    /// // This file leaves it to the program.
    /// let policy = Policy::from_toml("[client]\npath = 'normalized'")?;
    /// assert_eq!(ClientAddress::of_policy(policy.client()), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn of_policy(settings: &ClientSettings) -> Option<Self> {
        if !settings.has_address() {
            return None;
        }
        let mut address = Self::peer();
        if let Some(networks) = &settings.trust {
            address = address.trust_networks(networks.iter().map(|network| network.value));
        }
        if let Some(hops) = settings.hops {
            address = address.trusted_hops(hops.value);
        }
        Some(match settings.header.as_ref().map(|name| name.as_str()) {
            None => address,
            Some("x-forwarded-for") => address.x_forwarded_for(),
            Some("forwarded") => address.forwarded(),
            // Of a file that was read, each name is that of a header.
            Some(name) => match HeaderName::from_bytes(name.as_bytes()) {
                Ok(name) => address.header(name),
                Err(_) => address,
            },
        })
    }
}

impl From<SeenPath> for PathForm {
    fn from(path: SeenPath) -> Self {
        match path {
            SeenPath::Decoded => Self::Decoded,
            SeenPath::AsSent => Self::AsSent,
            SeenPath::Normalized => Self::Normalized,
        }
    }
}
