//! The conditions under which a rule applies.

mod condition;
mod covers;
mod deeper;
mod display;
mod error;
mod failure;
mod glob;
mod input;
mod matcher;
mod part;
mod path;
mod pattern;
mod reading;

pub use condition::{Condition, Test, When};
pub use error::{PatternError, PatternErrorKind};
pub use failure::Failure;
pub(crate) use failure::{Shown, ShownValues};
pub use glob::Glob;
pub(crate) use input::{clean_path, lower_host, with_text};
pub use matcher::Matcher;
pub use path::PathPattern;
pub use pattern::Pattern;
pub(crate) use reading::Reading;
