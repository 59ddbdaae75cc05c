//! Connections are encrypted with a certificate, which can be exchanged.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tollgate_server::{Server, Settings, StartError, TlsSettings};

use crate::Running;

const POLICY: &str = "[[rule]]\nname = 'a'\nlimit = '5/d'";

/// Writes another certificate and its key, and returns the certificate.
fn certify(folder: &TempDir) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    fs::write(folder.path().join("chain.pem"), cert.pem()).unwrap();
    fs::write(folder.path().join("key.pem"), signing_key.serialize_pem()).unwrap();
    cert.der().clone()
}

fn settings_of(folder: &TempDir) -> TlsSettings {
    TlsSettings {
        certificate: folder.path().join("chain.pem"),
        key: folder.path().join("key.pem"),
    }
}

/// Sends a request over a connection that trusts this certificate alone.
async fn get(
    address: SocketAddr,
    path: &str,
    trusted: &CertificateDer<'static>,
) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector
        .connect("localhost".try_into().unwrap(), stream)
        .await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::test]
async fn both_addresses_are_encrypted_and_the_certificate_can_be_exchanged() {
    let folder = TempDir::new().unwrap();
    let first = certify(&folder);
    let tls = settings_of(&folder);
    let service = Running::start_with(POLICY, |settings| settings.tls = Some(tls)).await;
    let answer = get(service.address, "/healthz", &first).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let answer = get(service.admin, "/metrics", &first).await.unwrap();
    assert!(answer.contains("tollgate_build_info"), "{answer}");
    // A client that does not encrypt gets no answer.
    let plain = service
        .client
        .get(format!("http://{}/healthz", service.address));
    assert!(plain.send().await.is_err());

    let second = certify(&folder);
    let _ = service.handle.reload().unwrap();
    get(service.address, "/healthz", &second).await.unwrap();
    get(service.address, "/healthz", &first).await.unwrap_err();
    // A file that is no certificate changes nothing.
    fs::write(folder.path().join("chain.pem"), "nothing").unwrap();
    let _ = service.handle.reload().unwrap();
    get(service.address, "/healthz", &second).await.unwrap();
    service.end().await;
}

#[tokio::test]
async fn errors_name_the_file() {
    let folder = TempDir::new().unwrap();
    certify(&folder);
    let tls = settings_of(&folder);
    let [chain, key] = [&tls.certificate, &tls.key].map(|path| path.display().to_string());
    let failed = async |tls: TlsSettings| {
        let mut settings = Settings::default();
        settings.listen = "127.0.0.1:0".parse().unwrap();
        settings.admin = None;
        settings.tls = Some(tls);
        let error = Server::bind(settings).await.unwrap_err();
        assert!(matches!(error, StartError::Tls(_)));
        error.to_string()
    };
    let missing = TlsSettings {
        certificate: folder.path().join("none.pem"),
        ..tls.clone()
    };
    let said = failed(missing.clone()).await;
    let none = missing.certificate.display();
    assert!(
        said.starts_with(&format!("the certificate in {none}: ")),
        "{said}"
    );
    fs::write(&tls.key, "nothing").unwrap();
    let said = failed(tls.clone()).await;
    assert!(said.starts_with(&format!("the key in {key}: ")), "{said}");
    fs::write(&tls.certificate, "").unwrap();
    let said = failed(tls.clone()).await;
    assert!(
        said.starts_with(&format!("the certificate in {chain}: ")),
        "{said}"
    );
    // A key of another certificate.
    certify(&folder);
    let old = fs::read(&tls.key).unwrap();
    certify(&folder);
    fs::write(&tls.key, old).unwrap();
    let said = failed(tls).await;
    assert!(said.starts_with("the key and the certificate: "), "{said}");
}
