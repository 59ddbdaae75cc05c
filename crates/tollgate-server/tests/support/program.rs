//! The programs that tests start.

use std::path::PathBuf;

/// Returns the path of a program, or says that a test is skipped without it. An environment
/// variable such as `TOLLGATE_CADDY` names another one than that on the path.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let variable = format!("TOLLGATE_{}", program.to_uppercase());
    if let Some(path) = std::env::var_os(variable) {
        return Some(path.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let found = folders
        .map(|folder| folder.join(program))
        .find(|path| path.is_file());
    if found.is_none() {
        println!("skipped: there is no {program}");
    }
    found
}
