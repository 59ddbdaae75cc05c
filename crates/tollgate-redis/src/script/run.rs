//! A script's call: `EVALSHA`, and `EVAL` for a server that does not know the script.

use super::Script;
use crate::client::{Client, ClientError, Command, Reply, Waiting};

impl Script {
    /// Runs the script: by its hash, and by its text if the server does not know the hash. The
    /// server ran nothing if it did not know the hash, so nothing runs twice.
    pub(crate) async fn run<C: Client + ?Sized>(
        &self,
        client: &C,
        keys: &[Vec<u8>],
        args: &[Vec<u8>],
        waiting: &Waiting,
    ) -> Result<Reply, ClientError> {
        let by_hash = Command::new("EVALSHA", self.sha(), keys, args, waiting);
        match client.send(&by_hash).await {
            Err(error) if error.is_code("NOSCRIPT") => {
                let by_text = Command::new("EVAL", self.text(), keys, args, waiting);
                client.send(&by_text).await
            }
            answered => answered,
        }
    }
}
