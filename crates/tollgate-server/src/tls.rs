//! Encrypted connections.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

use crate::settings::TlsSettings;

/// The reason why a certificate or its key can't be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// A file can't be read, or has none.
    File {
        /// The setting: `certificate` or `key`.
        field: &'static str,
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        why: String,
    },
    /// The key is not that of the certificate, or is of a kind that is not supported.
    Pair {
        /// The files.
        settings: TlsSettings,
        /// Why.
        error: rustls::Error,
    },
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { field, path, why } => {
                write!(f, "the {field} in {}: {why}", path.display())
            }
            Self::Pair { settings, error } => {
                let [certificate, key] = [&settings.certificate, &settings.key];
                let (certificate, key) = (certificate.display(), key.display());
                write!(
                    f,
                    "the certificate in {certificate} and the key in {key}: {error}"
                )
            }
        }
    }
}

impl std::error::Error for TlsError {}

/// The certificate with which connections are encrypted. It can be exchanged while they are.
#[derive(Debug)]
pub(crate) struct Certificate {
    settings: TlsSettings,
    current: ArcSwap<ServerConfig>,
}

impl Certificate {
    pub(crate) fn read(settings: TlsSettings) -> Result<Self, TlsError> {
        let current = ArcSwap::from_pointee(config(&settings)?);
        Ok(Self { settings, current })
    }

    /// Reads the files again. If they can't be used, the certificate stays as it is.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        self.current.store(Arc::new(config(&self.settings)?));
        Ok(())
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.current.load_full())
    }
}

fn config(settings: &TlsSettings) -> Result<ServerConfig, TlsError> {
    let failed = |field, path: &std::path::Path, error: pem::Error| TlsError::File {
        field,
        path: path.to_owned(),
        why: error.to_string(),
    };
    let path = &settings.certificate;
    let chain = CertificateDer::pem_file_iter(path).and_then(|chain| chain.collect());
    let chain: Vec<_> = chain.map_err(|error| failed("certificate", path, error))?;
    if chain.is_empty() {
        return Err(failed("certificate", path, pem::Error::NoItemsFound));
    }
    let path = &settings.key;
    let key = PrivateKeyDer::from_pem_file(path).map_err(|error| failed("key", path, error))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let unsuited = |error| TlsError::Pair {
        settings: settings.clone(),
        error,
    };
    let builder = builder.map_err(unsuited)?.with_no_client_auth();
    let config = builder.with_single_cert(chain, key);
    let mut config = config.map_err(unsuited)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
