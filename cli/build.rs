//! Passes the compiler's version to the program, which prints it above its measurements.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let said = env::var_os("RUSTC")
        .and_then(|rustc| Command::new(rustc).arg("--version").output().ok())
        .and_then(|output| String::from_utf8(output.stdout).ok());
    // "rustc 1.87.0 (17067e9ac 2025-05-09)": the first two words.
    let version = said.as_deref().unwrap_or("rustc of unknown version");
    let short: Vec<_> = version.split_whitespace().take(2).collect();
    println!("cargo::rustc-env=TOLLGATE_RUSTC={}", short.join(" "));
}
