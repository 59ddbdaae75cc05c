//! A service that runs.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use tokio::net::TcpListener;
use tokio::sync::{Mutex, oneshot, watch};
use tokio::time::Instant;
use tollgate_policy::{LivePolicy, Reloaded, Watch};

use crate::admin::sample::{self, Tables};
use crate::admin::{self, Admin};
use crate::budget::Budget;
use crate::connections::{self, Connections, Tls};
use crate::counters::Counters;
use crate::descriptors;
use crate::ends;
use crate::error::{ReloadError, StartError};
use crate::heaviest::Heaviest;
use crate::held::{self, Held};
use crate::history::History;
use crate::reload::Reloader;
use crate::route;
use crate::service::Service;
use crate::settings::Settings;
use crate::state::{self, Saver, unix_seconds};
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
    saver: Option<Arc<Saver>>,
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
        let mut settings = settings;
        let (builder, lock) = match &settings.state {
            Some(state) => {
                let (builder, lock) = state::restore(make, state)?;
                (builder, Some(lock))
            }
            None => (make(), None),
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
        settings.limits.connections = descriptors::cap(settings.limits.connections);
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
        let saver = settings.state.take().zip(lock);
        let saver = saver.map(|(state, lock)| Arc::new(Saver::new(Arc::clone(&live), state, lock)));
        // Only with the token can anybody ask for them.
        let asks_for_keys = settings.admin.is_some() && settings.admin_token.is_some();
        let now = unix_seconds(SystemTime::now());
        let counters = Counters::new(asks_for_keys.then(|| Heaviest::new(now)));
        let limits = settings.limits.clone();
        let service = Arc::new(Service::new(live, counters, held, limits));
        Ok(Self {
            service,
            saver,
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

    /// Answers until `stop` is ready. Then it accepts nothing more, answers the requests that have
    /// begun, frees the places of decisions that are held, and saves the state.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (stops, stopped) = watch::channel(false);
        // Operators are answered until all else has ended.
        let (ends, ended) = watch::channel(false);
        let connections = Arc::<Connections>::default();
        let service = Arc::clone(&self.service);
        let limits = self.settings.limits;
        let mut deciding = tokio::spawn(connections::serve(
            self.listener,
            self.tls.clone(),
            limits.clone(),
            Arc::clone(&service.budget),
            Arc::clone(&connections),
            stopped,
            move |peer, request| route::answer(&service, peer, request),
        ));
        let saving = self.saver.clone();
        let saving = saving.map(|saver| tokio::spawn(saver.run(ended.clone())));
        let operating = self.admin.map(|(listener, _)| {
            // Their places and their memory are their own: a flood of questions leaves them free.
            let limits = limits.of_operators();
            let budget = Arc::new(Budget::new(limits.pending_bytes));
            let admin = Arc::new(Admin {
                service: Arc::clone(&self.service),
                connections,
                saver: self.saver.clone(),
                reloader: self.reloader,
                store: self.store,
                token: self.settings.admin_token,
                strangers: AtomicU64::new(0),
                since: SystemTime::now(),
                limits: limits.clone(),
                budget: Arc::clone(&budget),
                scrapes: Mutex::default(),
                pages: Mutex::default(),
                history: History::default(),
                tables: Tables::default(),
            });
            tokio::spawn(sample::run(Arc::clone(&admin), ended.clone()));
            tokio::spawn(connections::serve(
                listener,
                self.tls,
                limits,
                budget,
                Arc::default(),
                ended,
                move |_, request| admin::answer(Arc::clone(&admin), request),
            ))
        });
        let (last, is_last) = oneshot::channel();
        let mut lapsing = tokio::spawn(lapse(Arc::clone(&self.service), is_last));
        let ended_early = tokio::select! {
            () = stop => false,
            _ = &mut deciding => true,
        };
        if ended_early {
            tracing::error!("no connection can be accepted any more: the service ends");
        }
        self.service.drains.store(true, Relaxed);
        let end = Instant::now() + limits.drain;
        let _ = stops.send(true);
        // It ends within the time that requests have to end.
        if !ended_early {
            let _ = deciding.await;
        }
        drop(self.watch);
        let _ = last.send(());
        // If requests took all the time, there is still a little for stores.
        let end = end.max(Instant::now() + Duration::from_secs(1));
        if tokio::time::timeout_at(end, &mut lapsing).await.is_err() {
            lapsing.abort();
            tracing::warn!("a store does not free the places of decisions that were held");
        }
        let _ = ends.send(true);
        if let Some(operating) = operating {
            let _ = operating.await;
        }
        if let Some(saving) = saving {
            let _ = saving.await;
        }
        // Nothing decides any more, so this is all.
        if let Some(saver) = self.saver {
            saver.save().await;
        }
    }
}

/// Ends the decisions whose time is over, and at last all.
async fn lapse(service: Arc<Service>, mut last: oneshot::Receiver<()>) {
    let mut every = tokio::time::interval(Duration::from_secs(1));
    loop {
        let now = tokio::select! {
            now = every.tick() => now,
            _ = &mut last => break,
        };
        held::end(service.held.take_lapsed(now)).await;
    }
    held::end(service.held.take_all()).await;
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
    /// Reads the policy's file and the certificate again. The built-in policy stays as it is.
    ///
    /// # Errors
    ///
    /// [`ReloadError`] if a file can't be read, or is not a policy or a certificate. What it should
    /// replace stays.
    pub fn reload(&self) -> Result<Reloaded, ReloadError> {
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
