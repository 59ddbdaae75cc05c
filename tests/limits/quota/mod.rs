//! Quotas: the valid ones, the errors of the others, and quotas and algorithms as text.

mod error;
pub(crate) mod kinds;
pub(crate) mod text;
