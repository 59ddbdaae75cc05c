//! A policy's file.

use std::path::Path;

use tollgate::clock::SystemClock;
use tollgate_policy::file::{PolicyFile, read_text};
use tollgate_policy::{PolicyBuilder, Problems};

/// The text of a policy, in TOML, or in JSON if the name of the file ends in `.json`.
pub(super) struct Source {
    pub(super) name: String,
    text: String,
    is_json: bool,
}

impl Source {
    /// Reads a file, or the standard input if the path is `-`. That is JSON if it begins with `{`,
    /// as no TOML does.
    ///
    /// # Errors
    ///
    /// Why the file can't be read.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let unreadable = |why: String| format!("{name} can't be read: {why}");
        let is_input = path.as_os_str() == "-";
        let read = if is_input {
            Path::new("/dev/stdin")
        } else {
            path
        };
        let text = read_text(read).map_err(|error| unreadable(error.to_string()))?;
        let has_end = |ends: &[&str]| {
            let end = path.extension().and_then(|end| end.to_str());
            end.is_some_and(|end| ends.iter().any(|it| it.eq_ignore_ascii_case(end)))
        };
        if has_end(&["yaml", "yml"]) {
            let why = "only TOML, and JSON if the name ends in .json, are read";
            return Err(unreadable(why.into()));
        }
        let is_json = has_end(&["json"]) || (is_input && text.trim_start().starts_with('{'));
        Ok(Self {
            name,
            text,
            is_json,
        })
    }

    /// Returns what the file says, or what is wrong with it.
    pub(super) fn read(&self) -> Result<PolicyFile, Problems> {
        let read = match self.is_json {
            true => PolicyFile::from_json(&self.text),
            false => PolicyFile::from_toml(&self.text),
        };
        read.map_err(|problems| problems.with_file(&self.name))
    }

    /// Returns what the file says, or all its errors.
    pub(super) fn read_checked(
        &self,
        builder: PolicyBuilder<SystemClock>,
    ) -> Result<PolicyFile, Problems> {
        let problems = self.check(builder);
        match problems.has_errors() {
            true => Err(problems),
            false => self.read(),
        }
    }

    /// Returns all errors and warnings.
    pub(super) fn check(&self, builder: PolicyBuilder<SystemClock>) -> Problems {
        let problems = match self.is_json {
            true => builder.check_json(&self.text),
            false => builder.check_toml(&self.text),
        };
        problems.with_file(&self.name)
    }
}
