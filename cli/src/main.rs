//! The tollgate command.

#[cfg(feature = "measure")]
mod bench;
mod exit_code;
#[cfg(feature = "measure")]
mod plot;
mod policy;
#[cfg(feature = "serve")]
mod serve;
mod table;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A lock-free rate limiter, from the command line.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "measure")]
    Bench(bench::Arguments),
    Check(policy::check::Arguments),
    Explain(policy::explain::Arguments),
    Key(policy::key::Arguments),
    #[cfg(feature = "measure")]
    Plot(plot::Arguments),
    #[cfg(feature = "serve")]
    Serve(serve::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        #[cfg(feature = "measure")]
        Command::Bench(arguments) => bench::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Check(arguments) => policy::check::run(&arguments),
        Command::Explain(arguments) => policy::explain::run(&arguments),
        Command::Key(arguments) => policy::key::run(&arguments),
        #[cfg(feature = "measure")]
        Command::Plot(arguments) => plot::run(&arguments).map(|()| ExitCode::SUCCESS),
        #[cfg(feature = "serve")]
        Command::Serve(arguments) => serve::run(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether the reader closed the pipe, as `head` does. This is not a failure.
fn is_closed_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    let plain = error.downcast_ref().map(io::Error::kind);
    let json = || {
        error
            .downcast_ref()
            .and_then(serde_json::Error::io_error_kind)
    };
    plain.or_else(json) == Some(io::ErrorKind::BrokenPipe)
}
