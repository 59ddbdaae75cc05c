//! What a decision says: [`Granted`], [`Denied`], and [`Charged`] for what was taken into debt.

mod charged;
pub(crate) mod denied;
pub(crate) mod granted;

pub use charged::Charged;
pub(crate) use denied::Denied;
pub use granted::GrantInfo;
pub(crate) use granted::Granted;
#[cfg(feature = "std")]
pub(crate) use granted::SEVERAL;
