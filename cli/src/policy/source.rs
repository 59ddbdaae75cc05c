//! Reads a policy from a file.

use std::fs;
use std::path::Path;

use tollgate_policy::file::PolicyFile;
use tollgate_policy::{Position, Problem, Problems};

/// Reads a policy in TOML, or in JSON if the name of the file ends in `.json`.
///
/// # Errors
///
/// Why the file can't be read. What is wrong with the policy itself is the inner error.
pub(super) fn read(path: &Path) -> Result<Result<PolicyFile, Problems>, String> {
    let unreadable = |why: &str| format!("{} can't be read: {why}", path.display());
    let bytes = fs::read(path).map_err(|error| unreadable(&error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        unreadable(&format!("it is not text: byte {at} is not UTF-8"))
    })?;
    let is_json = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("json"));
    let read = match is_json {
        true => from_json(&text),
        false => PolicyFile::from_toml(&text),
    };
    Ok(read.map_err(|problems| problems.with_file(path.display().to_string())))
}

fn from_json(text: &str) -> Result<PolicyFile, Problems> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = PolicyFile::from_serde(&mut reader);
    read.and_then(|file| reader.end().map(|()| file))
        .unwrap_or_else(|error| {
            let message = format!("the text is not JSON: {error}");
            let position = Position::new(error.line(), error.column());
            let mut problems = Problems::new();
            problems.push(Problem::error("", "", message).at(position));
            Err(problems)
        })
}
