//! A policy's file.

use std::path::Path;

use clap::Args;
use tollgate::clock::SystemClock;
use tollgate_policy::file::{Format, PolicyFile, read_text};
use tollgate_policy::{PolicyBuilder, Problems};

/// How policies are read.
#[derive(Debug, Args)]
pub(super) struct Reading {
    /// Read toml, json or yaml, whatever a name ends in
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<Format>,
}

fn format(name: &str) -> Result<Format, &'static str> {
    match name {
        "toml" => Ok(Format::Toml),
        "json" => Ok(Format::Json),
        "yaml" => Ok(Format::Yaml),
        _ => Err("must be toml, json or yaml"),
    }
}

/// The text of a policy.
pub(super) struct Source {
    pub(super) name: String,
    text: String,
    format: Format,
}

impl Reading {
    /// Reads a file, or the standard input if the path is `-`. Without `--format`, that is JSON if
    /// it begins with `{`, as no TOML does.
    ///
    /// # Errors
    ///
    /// Why the file can't be read.
    pub(super) fn open(&self, path: &Path) -> Result<Source, String> {
        let name = path.display().to_string();
        let is_input = path.as_os_str() == "-";
        let read = if is_input {
            Path::new("/dev/stdin")
        } else {
            path
        };
        let text = read_text(read).map_err(|error| format!("{name} can't be read: {error}"))?;
        let format = self.format.unwrap_or_else(|| match is_input {
            true if text.trim_start().starts_with('{') => Format::Json,
            _ => Format::of_path(path),
        });
        Ok(Source { name, text, format })
    }
}

impl Source {
    /// Returns what the file says, or what is wrong with it.
    pub(super) fn read(&self) -> Result<PolicyFile, Problems> {
        let read = PolicyFile::from_text(&self.text, self.format);
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
        let problems = builder.check_text(&self.text, self.format);
        problems.with_file(&self.name)
    }
}
