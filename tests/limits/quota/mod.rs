//! Quotas: which of them can be had, and what is said of those that can't; and quotas and
//! algorithms as text.

mod error;
mod kinds;
pub(crate) mod text;
