//! What a policy is warned of.

mod costs;
mod exceptions;
mod names;
mod never_denies;
mod rules;
