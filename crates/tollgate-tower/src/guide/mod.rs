//! Guides: limits for servers, in production and under attack, and how to come from
//! `tower_governor`.
//!
//! They are the pages of the crate's folder `docs`.

// The first definition of a label counts: here, where links between the pages lead in this
// documentation. In the repository, each page defines the same labels at its end.
#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/HTTP.md")]
pub mod http {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/PRODUCTION.md")]
pub mod production {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/SECURITY.md")]
pub mod security {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/FROM_TOWER_GOVERNOR.md")]
pub mod from_tower_governor {}
