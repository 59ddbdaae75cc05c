//! Connections of the crate `redis`, and of pools, as clients.

use redis::Value;
use redis::aio::ConnectionLike;

use super::redis_rs::{packed, refused, reply};
use super::{Client, ClientError, Command, Reply};

/// A client that sends commands on clones of a connection of the crate `redis`, such as its
/// `ConnectionManager` or `ClusterConnection`.
///
/// Use it for a connection that the program has already. Otherwise use
/// [`connect_lazily`](super::connect_lazily) or `connect_to_cluster_lazily`, which recover sooner
/// and know each node's outages.
///
/// ```no_run
/// use std::sync::Arc;
/// use redis::cluster::ClusterClientBuilder;
/// use tollgate_redis::RedisServer;
/// use tollgate_redis::client::Adapter;
///
/// # async fn connect() -> redis::RedisResult<()> {
/// let cluster = ClusterClientBuilder::new(["redis://10.0.0.1:7000"]).retries(0).build()?;
/// let server = Arc::new(RedisServer::new(Adapter(cluster.get_async_connection().await?)));
/// # drop(server);
/// # Ok(())
/// # }
/// ```
///
/// The connection must not send a command again whose answer is lost: a grant would be taken twice,
/// or given back twice. So a cluster's connection needs `retries(0)`. Then the limits of a slot
/// that has moved fall back until the connection knows where it is. A `ConnectionManager` never
/// sends a command again.
///
/// # Pools
///
/// A pool that lends connections becomes a [`Client`] in a few lines, with [`Command::send_on`]:
///
/// ```
/// use redis::aio::MultiplexedConnection;
/// use tokio::sync::Mutex;
/// use tollgate_redis::client::{Client, ClientError, Command, Reply};
///
/// /// A pool of one connection. With one of another crate, call its `get` in place of `lock`, and
/// /// return an error of it as `ClientError::NotSent`.
/// struct Pool(Mutex<MultiplexedConnection>);
///
/// impl Client for Pool {
///     async fn send(&self, command: &Command<'_>) -> Result<Reply, ClientError> {
///         let mut connection = self.0.lock().await;
///         command.send_on(&mut *connection).await
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Adapter<C>(pub C);

impl<C: ConnectionLike + Clone + Send + Sync> Client for Adapter<C> {
    async fn send(&self, command: &Command<'_>) -> Result<Reply, ClientError> {
        command.send_on(&mut self.0.clone()).await
    }
}

impl Command<'_> {
    /// Sends the command on a connection of the crate `redis`, and returns the server's answer. See
    /// [`Adapter`].
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the command, or if there is no answer.
    pub async fn send_on(
        &self,
        connection: &mut (impl ConnectionLike + Send + ?Sized),
    ) -> Result<Reply, ClientError> {
        let value = connection.req_packed_command(&packed(self)).await;
        reply(value.and_then(Value::extract_error).map_err(refused)?)
    }
}
