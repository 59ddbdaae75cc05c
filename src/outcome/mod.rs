//! What a decision says: [`Granted`], [`Denied`], and [`Charged`] for what was taken into debt.

mod charged;
mod denied;
mod granted;

pub use charged::Charged;
pub use denied::Denied;
#[cfg(feature = "std")]
pub(crate) use granted::SEVERAL;
pub use granted::{GrantInfo, Granted};
