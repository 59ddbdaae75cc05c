//! `tollgate serve`: a service that decides.

use std::error::Error;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tollgate_policy::Secret;
use tollgate_server::{Handle, Server, Settings, StateSettings, TlsSettings};
use tracing_subscriber::filter::LevelFilter;

use crate::exit_code::unusable;

/// Serve a policy: decide for nginx, Traefik, Caddy, HAProxy, Envoy, and any program
///
/// Without FILE, a built-in policy allows 100 requests a minute for each client address. SIGHUP
/// reads the file again, as each change of the file does; SIGTERM and SIGINT end the service after
/// the requests that have begun, and a second one ends it at once, with exit code 1. The exit code
/// is 2 if the service can't start.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The policy, in TOML, or in JSON or YAML if its name ends in .json, .yaml or .yml
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The address at which proxies and programs ask. Whoever reaches it can name any client
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4290")]
    listen: SocketAddr,

    /// The address for metrics, health and administration
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4291")]
    admin: SocketAddr,

    /// Have no address for metrics, health and administration
    #[arg(long, conflicts_with = "admin")]
    no_admin: bool,

    /// A file with the token of those who change something at the address for administration, or
    /// ask about a client. Or set TOLLGATE_ADMIN_TOKEN
    #[arg(long, value_name = "FILE")]
    admin_token_file: Option<PathBuf>,

    /// A file in which the state is kept for the next process
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// How often the state is written
    #[arg(long, value_name = "SECONDS", default_value_t = 5, requires = "state", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    state_every_s: u64,

    /// End if the state can't be read, instead of putting its file aside and beginning anew
    #[arg(long, requires = "state")]
    state_strict: bool,

    /// A file with the certificate chain in PEM: both addresses are encrypted
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,

    /// A file with the key of the certificate in PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,

    /// Read the file again only at SIGHUP, not when it changes
    #[arg(long)]
    no_watch: bool,

    /// How long a decision is held that is asked for with "hold"
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    hold_s: u64,

    /// How many connections are open at once
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,

    /// How long requests that have begun may take when the service ends
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    drain_s: u64,

    /// Log in JSON, a line for each event
    #[arg(long)]
    log_json: bool,
}

impl Arguments {
    fn settings(&self) -> Result<Settings, String> {
        let mut settings = Settings::default();
        settings.policy = self.file.clone();
        settings.watch = !self.no_watch;
        settings.listen = self.listen;
        settings.admin = Some(self.admin).filter(|_| !self.no_admin);
        settings.hold_for = Duration::from_secs(self.hold_s);
        settings.limits.connections = usize::try_from(self.connections).unwrap_or(usize::MAX);
        settings.limits.drain = Duration::from_secs(self.drain_s);
        settings.admin_token = self.admin_token()?;
        settings.state = self.state.as_ref().map(|path| {
            let mut state = StateSettings::new(path);
            state.every = Duration::from_secs(self.state_every_s);
            state.strict = self.state_strict;
            state
        });
        let tls = self.tls_certificate.clone().zip(self.tls_key.clone());
        settings.tls = tls.map(|(certificate, key)| TlsSettings { certificate, key });
        Ok(settings)
    }

    /// Returns the token from its file, or from the environment.
    fn admin_token(&self) -> Result<Option<Secret>, String> {
        const VARIABLE: &str = "TOLLGATE_ADMIN_TOKEN";
        let (token, of) = match &self.admin_token_file {
            Some(path) => {
                let token = std::fs::read_to_string(path);
                let of = path.display().to_string();
                (
                    token.map_err(|error| format!("can't read {of}: {error}"))?,
                    of,
                )
            }
            None => match std::env::var(VARIABLE) {
                Ok(token) => (token, VARIABLE.to_owned()),
                Err(std::env::VarError::NotPresent) => return Ok(None),
                Err(error) => return Err(format!("{VARIABLE}: {error}")),
            },
        };
        match token.trim() {
            token if token.len() < 16 => {
                Err(format!("the token in {of} must have at least 16 bytes"))
            }
            token => Ok(Some(Secret::new(token))),
        }
    }
}

/// Serves until a signal ends it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let log = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::INFO)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        // A log that can't be written must not end what the service does.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    match arguments.log_json {
        true => log.json().init(),
        false => log.init(),
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    raise_file_limit();
    let code = runtime.block_on(serve(arguments));
    // At a second signal, nothing is waited for.
    runtime.shutdown_background();
    code
}

/// Lets the process have as many connections as the system allows it.
fn raise_file_limit() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};

        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // If it stays as it is, the service has fewer connections, and says so.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

async fn serve(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let settings = match arguments.settings() {
        Ok(settings) => settings,
        Err(message) => return Ok(unusable(&message)),
    };
    let scheme = if settings.tls.is_some() {
        "https"
    } else {
        "http"
    };
    // A signal that comes while the service starts is not lost.
    let mut signals = Signals::new()?;
    let server = match Server::bind(settings).await {
        Ok(server) => server,
        Err(error) => return Ok(unusable(&error.to_string())),
    };
    let handle = server.handle();
    greet(arguments, scheme, &server);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let ends_at_once = async {
        signals.until_end(&handle).await;
        tracing::info!("the service ends");
        drop(stop);
        signals.until_end(&handle).await;
    };
    tokio::select! {
        () = server.run(async { drop(stopped.await) }) => Ok(ExitCode::SUCCESS),
        () = ends_at_once => {
            tracing::error!("the service ends at once: the state since its last save is lost");
            Ok(ExitCode::FAILURE)
        }
    }
}

#[cfg(unix)]
struct Signals {
    hang_up: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self {
            hang_up: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Reloads the policy at each SIGHUP, and returns at a signal to end.
    async fn until_end(&mut self, handle: &Handle) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hang_up.recv() => {
                    let handle = handle.clone();
                    // It reads a file. What became of it is logged.
                    drop(tokio::task::spawn_blocking(move || drop(handle.reload())));
                }
            }
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn until_end(&mut self, _: &Handle) {
        // If there are no such signals, the service runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}

/// Says where the service is, and how to try it.
fn greet(arguments: &Arguments, scheme: &str, server: &Server) {
    let address = server.address();
    let by = match &arguments.file {
        Some(file) => format!(
            "tollgate decides by {} at {scheme}://{address}",
            file.display()
        ),
        None => format!(
            "tollgate decides at {scheme}://{address}: 100 requests a minute for each client address"
        ),
    };
    let facts = "'{\"facts\": {\"client-ip\": \"192.0.2.1\"}}'";
    let mut lines = format!("{by}\n  try      curl -s {scheme}://{address}/decide -d {facts}\n");
    if let Some(admin) = server.admin_address() {
        lines += &format!("  page     {scheme}://{admin}/\n");
        lines += &format!("  metrics  curl -s {scheme}://{admin}/metrics\n");
    }
    // The service decides also if nobody reads these lines.
    let mut out = std::io::stdout();
    let _ = out.write_all(lines.as_bytes());
    let _ = out.flush();
}
