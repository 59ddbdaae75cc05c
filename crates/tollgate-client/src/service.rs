use std::sync::Arc;
use std::task::{Context, Poll};

use tower::Service;

use super::copy::CopyRequest;
use super::error::ClientLimitError;
use super::future::ClientFuture;
use super::message::{ClientRequest, ClientResponse};
use super::settings::Shared;

/// Paces the requests of a client, and sends some of them again. [`ClientLimitLayer`] makes it.
///
/// Clones share all state: the quota, what is known of servers, and the retry budget.
///
/// It is ready when the inner service is. A request then keeps the inner service for as long as it
/// waits for its turn. So put a layer that limits how many requests run at once, such as tower's
/// `ConcurrencyLimit`, outside of this one: otherwise waiting requests count as running.
///
/// [`ClientLimitLayer`]: super::ClientLimitLayer
#[derive(Debug, Clone)]
#[must_use]
pub struct ClientLimit<S, C> {
    pub(super) inner: S,
    pub(super) copier: C,
    pub(super) shared: Arc<Shared>,
}

impl<S, C> ClientLimit<S, C> {
    /// Returns the inner service.
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    /// Returns how many groups of requests are remembered, and how many limits of servers.
    #[must_use]
    pub fn remembered(&self) -> (usize, usize) {
        self.shared.memory.len()
    }
}

impl<S, Request, C> Service<Request> for ClientLimit<S, C>
where
    S: Service<Request, Response: ClientResponse> + Clone,
    Request: ClientRequest,
    C: CopyRequest<Request> + Clone,
{
    type Response = S::Response;
    type Error = ClientLimitError<S::Error>;
    type Future = ClientFuture<S, Request, C>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(ClientLimitError::Inner)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // The service that is ready is the one that is called. Its clone is not ready.
        let clone = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, clone);
        let shared = Arc::clone(&self.shared);
        ClientFuture::new(shared, ready, self.copier.clone(), request)
    }
}
