//! Guides: the language of policies, and how to come from a gateway's limits.
//!
//! They are the pages of the crate's folder `docs`.

// The first definition of a label counts: here, where links between the pages lead in this
// documentation. In the repository, each page defines the same labels at its end.
#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/POLICY.md")]
pub mod policy {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/FROM_GATEWAYS.md")]
pub mod from_gateways {}
