//! Guides: bounds, faults and sizes of limits over many machines, and how to operate their server.
//!
//! They are the pages of the crate's folder `docs`.

// The first definition of a label counts: here, where links between the pages lead in this
// documentation. In the repository, each page defines the same labels at its end.
#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/DISTRIBUTED.md")]
pub mod distributed {}

#[doc = include_str!("links.md")]
#[doc = include_str!("../../docs/OPERATING.md")]
pub mod operating {}
