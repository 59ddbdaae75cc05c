//! A service that runs.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tollgate_policy::{FileError, LivePolicy, Reloaded, Watch};

use crate::admin::{self, Admin};
use crate::connections::{self, Connections, Tls};
use crate::ends;
use crate::error::StartError;
use crate::held::Held;
use crate::reload::Reloader;
use crate::route;
use crate::service::Service;
use crate::settings::Settings;
use crate::state::{self, Saver};
use crate::store::Store;
#[cfg(feature = "tls")]
use crate::tls::Certificate;

/// The policy that decides if no file is given.
pub const BUILT_IN: &str = include_str!("built_in.toml");

/// How often a policy's file is read where the system does not tell of changes.
const POLL: Duration = Duration::from_secs(10);

/// A decision service: it listens, and answers when it [runs](Self::run).
///
/// ```
/// use tollgate_server::{Server, Settings};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut settings = Settings::default();
/// settings.listen = "127.0.0.1:0".parse()?; // the system chooses the port
/// settings.admin = None;
/// let server = Server::bind(settings).await?;
/// println!("ask at http://{}/decide", server.address());
/// # let stop = async {};
/// server.run(stop).await; // until `stop`, a future, is ready
/// # Ok(())
/// # }
/// ```
pub struct Server {
    service: Arc<Service>,
    reloader: Arc<Reloader>,
    store: Option<Store>,
    tls: Tls,
    settings: Settings,
    listener: TcpListener,
    address: SocketAddr,
    admin: Option<(TcpListener, SocketAddr)>,
    watch: Option<Watch>,
}

impl Server {
    /// Reads the policy, and listens.
    ///
    /// # Errors
    ///
    /// [`StartError`] if the policy has errors, or if an address can't be used.
    pub async fn bind(settings: Settings) -> Result<Self, StartError> {
        let store = match &settings.policy {
            Some(path) => Store::of(path)?,
            None => None,
        };
        let make = || Store::builder(store.as_ref());
        let builder = match &settings.state {
            Some(state) => state::restore(make, state)?,
            None => make(),
        };
        let live = match &settings.policy {
            Some(path) => LivePolicy::from_file(path, builder)?,
            None => builder
                .build_toml(BUILT_IN)
                .map_err(StartError::BuiltIn)?
                .into(),
        };
        let live = Arc::new(live);
        ends::warn(&live.load());
        let (listener, address) = bind(settings.listen).await?;
        let admin = match settings.admin {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        #[allow(unused_mut, reason = "only a certificate is added to it")]
        let mut reloader = Reloader::new(Arc::clone(&live), settings.policy.clone());
        #[allow(unused_mut, reason = "the feature `tls` changes it")]
        let mut tls = Tls::Off;
        #[cfg(feature = "tls")]
        if let Some(settings) = &settings.tls {
            let certificate = Certificate::read(settings.clone()).map_err(StartError::Tls)?;
            let certificate = Arc::new(certificate);
            tls = Tls::On(Arc::clone(&certificate));
            reloader.certificate = Some(certificate);
        }
        let reloader = Arc::new(reloader);
        let watch = match &settings.policy {
            Some(path) if settings.watch => {
                let reloader = Arc::clone(&reloader);
                let watch = live.watch(path, POLL, move |report| reloader.report(&report));
                Some(watch.map_err(StartError::Watch)?)
            }
            _ => None,
        };
        let held = Held::new(settings.hold_for, settings.most_held);
        let service = Arc::new(Service::new(live, held, settings.limits.clone()));
        Ok(Self {
            service,
            reloader,
            store,
            tls,
            settings,
            listener,
            address,
            admin,
            watch,
        })
    }

    /// Returns the address at which proxies and programs ask.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address at which operators ask.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        let admin = self.admin.as_ref();
        admin.map(|(_, address)| *address)
    }

    /// Returns what changes the service while it runs.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle {
            reloader: Arc::clone(&self.reloader),
        }
    }

    /// Answers until `stop` is ready. Then it accepts nothing more, and answers the requests that
    /// have begun.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (stops, stopped) = watch::channel(false);
        let connections = Arc::<Connections>::default();
        let service = Arc::clone(&self.service);
        let deciding = tokio::spawn(connections::serve(
            self.listener,
            self.tls.clone(),
            self.settings.limits.clone(),
            Arc::clone(&connections),
            stopped.clone(),
            move |peer, request| route::answer(&service, peer, request),
        ));
        let saver = self.settings.state.map(|state| {
            let policy = Arc::clone(&self.service.policy);
            Arc::new(Saver::new(policy, state))
        });
        let saving = saver
            .clone()
            .map(|saver| tokio::spawn(saver.run(stopped.clone())));
        let operating = self.admin.map(|(listener, _)| {
            let service = Arc::clone(&self.service);
            let admin = Arc::new(Admin {
                service,
                connections,
                saver: saver.clone(),
                reloader: self.reloader,
                store: self.store,
                token: self.settings.admin_token,
                strangers: AtomicU64::new(0),
            });
            tokio::spawn(connections::serve(
                listener,
                self.tls,
                self.settings.limits.clone(),
                Arc::default(),
                stopped,
                move |_, request| admin::answer(Arc::clone(&admin), request),
            ))
        });
        let lapsing = tokio::spawn(lapse(Arc::clone(&self.service)));
        stop.await;
        self.service.drains.store(true, Relaxed);
        let _ = stops.send(true);
        // Each ends within the time that requests have to end.
        let _ = deciding.await;
        if let Some(operating) = operating {
            let _ = operating.await;
        }
        lapsing.abort();
        drop(self.watch);
        // Nothing decides any more, so this is all.
        if let Some(saving) = saving {
            let _ = saving.await;
        }
        if let Some(saver) = saver {
            saver.save().await;
        }
    }
}

/// Ends the decisions whose time is over.
async fn lapse(service: Arc<Service>) {
    let mut every = tokio::time::interval(Duration::from_secs(1));
    loop {
        let now = every.tick().await;
        for decision in service.held.take_lapsed(now) {
            // It keeps its permits, and frees its places, also those of a store.
            let _ = decision.settle_async(&()).await;
        }
    }
}

/// Listens at an address, and returns it with the port that the system chose if it has none.
async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let listener = TcpListener::bind(address).await;
    let bound = listener.and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    bound.map_err(|error| StartError::Listen { address, error })
}

/// Changes a service while it runs.
#[derive(Clone)]
pub struct Handle {
    reloader: Arc<Reloader>,
}

impl Handle {
    /// Reads the policy's file again. The built-in policy stays as it is.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the file can't be read, or is not a policy. In that case nothing has
    /// changed.
    pub fn reload(&self) -> Result<Reloaded, FileError> {
        self.reloader.reload()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}
