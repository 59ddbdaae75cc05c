//! The layer as a middleware of the crate `reqwest-middleware`.

use std::sync::{Arc, Mutex};

use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{Error, Middleware, Next, Result};
use tower::service_fn;

use super::copy::CopyRequest;
use super::error::ClientLimitError;
use super::future::ClientFuture;
use super::layer::ClientLimitLayer;
use super::memory::lock;

/// Paces what a client of `reqwest-middleware` sends, and sends some of it again. Middlewares that
/// are added after the layer see each attempt.
///
/// An error of the layer itself is an `Error::Middleware`, which can be downcast to
/// `ClientLimitError<reqwest_middleware::Error>`.
///
/// ```no_run
/// use reqwest_middleware::ClientBuilder;
/// use tollgate::Quota;
/// use tollgate_client::ClientLimitLayer;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let layer = ClientLimitLayer::new().quota(Quota::per_second(50))?;
/// let client = ClientBuilder::new(reqwest::Client::new()).with(layer).build();
///
/// let answer = client.get("https://api.example.com/users").send().await?;
/// # _ = answer;
/// # Ok(())
/// # }
/// ```
#[async_trait::async_trait]
impl<C> Middleware for ClientLimitLayer<C>
where
    C: CopyRequest<Request> + Clone + Send + Sync + 'static,
{
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        // What middlewares tell each other. One attempt is made at a time.
        let told = Arc::new(Mutex::new(extensions.clone()));
        let rest = service_fn(|request| {
            let (next, told) = (next.clone(), Arc::clone(&told));
            async move {
                let mut extensions = std::mem::take(&mut *lock(&told));
                let answer = next.run(request, &mut extensions).await;
                *lock(&told) = extensions;
                answer
            }
        });
        let sent = ClientFuture::new(self.shared(), rest, self.copier.clone(), request).await;
        *extensions = std::mem::take(&mut *lock(&told));
        sent.map_err(|error| match error {
            ClientLimitError::Inner(error) => error,
            error => Error::middleware(error),
        })
    }
}
