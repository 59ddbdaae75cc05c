//! Guides: asking the service, by programs, by proxies and by Envoy, and running it.
//!
//! They are the pages of the crate's folder `docs`.

// The first definition of a label counts: here, where links between the pages lead in this
// documentation. In the repository, each page defines the same labels at its end.
#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/SERVICE.md")]
pub mod service {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/ENVOY.md")]
pub mod envoy {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/PROXIES.md")]
pub mod proxies {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/RUNNING.md")]
pub mod running {}
