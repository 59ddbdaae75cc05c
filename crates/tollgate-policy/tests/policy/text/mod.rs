//! What a policy's file may say, and what is reported if it says something else.

mod any_text;
mod clients;
mod every_field;
mod fields;
mod golden;
mod json;
mod large;
mod listed;
mod names;
mod problems;
mod stores;
#[cfg(feature = "yaml")]
mod yaml;

/// A policy that uses every field, and every form of its value.
const EVERY_FIELD: &str = include_str!("every_field.toml");
/// The same policy in JSON.
const JSON: &str = include_str!("every_field.json");
/// The same policy in YAML.
const YAML: &str = include_str!("every_field.yaml");
