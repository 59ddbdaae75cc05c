//! What a decision says: [`Granted`], [`Denied`], [`Charged`] for what was taken into debt, and
//! [`Settled`] for an estimate that was corrected.

mod charged;
pub(crate) mod denied;
pub(crate) mod granted;
mod settled;

pub use charged::Charged;
pub(crate) use denied::Denied;
pub use granted::GrantInfo;
pub(crate) use granted::Granted;
#[cfg(feature = "std")]
pub(crate) use granted::SEVERAL;
pub use settled::Settled;
