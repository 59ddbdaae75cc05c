//! What a policy is warned of.

mod costs;
mod names;
mod never_denies;
mod rules;
