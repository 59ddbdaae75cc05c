//! `tollgate key`: what the keys of a rule are called on the server.

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tollgate_policy::file::{PolicyFile, Rule};
use tollgate_policy::redis::RedisStore;
use tollgate_redis::Keys;

use super::registered::{REDIS, Registered};
use super::source::Reading;
use crate::exit_code::{INVALID, unusable};

/// Print the keys that a rule stores on Redis or Valkey for one client
///
/// Each line is the name of a key, for redis-cli: one for each limit of the rule, or for each of
/// its plans. The name has hashes of the client's values, so no other command can tell it. The
/// secret is that of the policy, or of the program. The exit code is 0 if the keys are printed; 1
/// if the policy has errors, as tollgate check finds them; and 2 if the file can't be read, or the
/// rule has no such keys.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The policy, in TOML, or in JSON or YAML if its name ends in .json, .yaml or .yml
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The name of a rule on the store redis
    #[arg(value_name = "RULE")]
    rule: String,

    /// A value for each part of the rule's key, in its order
    #[arg(value_name = "VALUE")]
    values: Vec<String>,

    /// The namespace that the program gives its keys. Without this, that of the policy's table
    /// `store`, or api
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,

    /// The tag that the program gives all its keys (Keys::with_tag)
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,

    /// The environment variable with the secret of the program (Keys::with_secret), if the policy
    /// has none
    #[arg(long, value_name = "VARIABLE")]
    secret_env: Option<String>,

    /// The program lets users be readable (Keys::with_readable_users)
    #[arg(long, conflicts_with = "secret_env")]
    readable_users: bool,

    #[command(flatten)]
    reading: Reading,

    #[command(flatten)]
    registered: Registered,

    /// A fact that the program computes: a resolver of keys or a lookup of plans; can be given
    /// several times
    #[arg(long = "fact", value_name = "NAME")]
    facts: Vec<String>,

    /// Print JSON: a list of objects {"limit", "plan" (null if the rule has no plans), "key"}
    #[arg(long)]
    json: bool,
}

/// The namespace of keys, if neither the command line nor the policy says it.
const NAMESPACE: &str = "api";

/// Prints the keys of a rule.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let source = match arguments.reading.open(&arguments.file) {
        Ok(source) => source,
        Err(message) => return Ok(unusable(&message)),
    };
    // What is wrong with the file is reported below.
    let file = source.read().unwrap_or_default();
    let keys = match keys(arguments, &file) {
        Ok(keys) => keys,
        Err(message) => return Ok(unusable(&message)),
    };
    let facts = arguments.facts.iter().map(String::as_str);
    let builder = arguments.registered.builder(keys.clone(), facts);
    let file = match source.read_checked(builder) {
        Ok(file) => file,
        Err(problems) => {
            eprintln!("{problems}");
            return Ok(ExitCode::from(INVALID));
        }
    };
    if let Some(message) = other_store(arguments, &file) {
        return Ok(unusable(&message));
    }
    let values: Vec<&str> = arguments.values.iter().map(String::as_str).collect();
    let store = RedisStore::without_server(keys);
    let stored = match store.stored_keys(&file, &arguments.rule, &values) {
        Ok(stored) => stored,
        Err(error) => return Ok(unusable(&format!("{}: {error}", source.name))),
    };
    let mut out = io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &stored)?;
        writeln!(out)?;
    } else {
        for stored in stored {
            writeln!(out, "{}", stored.key)?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the names of keys as the program makes them.
fn keys(arguments: &Arguments, file: &PolicyFile) -> Result<Keys, String> {
    let said = |error: tollgate_redis::KeysError| error.to_string();
    let of_file = file.store.as_ref().map(|store| store.namespace.as_str());
    let namespace = arguments.namespace.as_deref().or(of_file);
    let mut keys = Keys::new(namespace.unwrap_or(NAMESPACE)).map_err(said)?;
    if let Some(tag) = &arguments.tag {
        keys = keys.with_tag(tag).map_err(said)?;
    }
    if let Some(name) = &arguments.secret_env {
        let secret = env::var(name).map_err(|error| format!("--secret-env {name}: {error}"))?;
        keys = keys.with_secret(secret).map_err(said)?;
    }
    Ok(match arguments.readable_users {
        true => keys.with_readable_users(),
        false => keys,
    })
}

/// If the rule is on a store whose keys only the program knows, says so.
fn other_store(arguments: &Arguments, file: &PolicyFile) -> Option<String> {
    let is_other = |rule: &&Rule| {
        let store = rule.store.value.as_str();
        store != "memory" && (store != REDIS || arguments.registered.has_store(REDIS))
    };
    let mut rules = file.rules.iter();
    let rule = rules.find(|rule| rule.name.value == arguments.rule)?;
    let rule = Some(rule).filter(is_other)?;
    let (name, store) = (&rule.name.value, &rule.store.value);
    Some(format!(
        "rule {name:?} is on the store {store:?}, whose keys only the program knows"
    ))
}
