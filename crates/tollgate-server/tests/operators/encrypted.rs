//! Connections are encrypted with a certificate, which can be exchanged.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tollgate_server::{ReloadError, Server, Settings, StartError, TlsSettings};

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

/// Trusts this certificate alone.
fn config(trusted: &CertificateDer<'static>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

async fn connect(
    address: SocketAddr,
    config: ClientConfig,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let connector = TlsConnector::from(Arc::new(config));
    connector
        .connect("localhost".try_into().unwrap(), stream)
        .await
}

/// Sends a request over a connection that trusts this certificate alone.
async fn get(
    address: SocketAddr,
    path: &str,
    trusted: &CertificateDer<'static>,
) -> std::io::Result<String> {
    let mut stream = connect(address, config(trusted)).await?;
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
    let error = service.handle.reload().unwrap_err();
    assert!(matches!(error, ReloadError::Tls(_)), "{error}");
    assert!(error.to_string().contains("chain.pem"), "{error}");
    get(service.address, "/healthz", &second).await.unwrap();
    // Nor does a policy with errors keep a certificate from being exchanged.
    fs::write(service.file.path(), "nothing").unwrap();
    let third = certify(&folder);
    let error = service.handle.reload().unwrap_err();
    assert!(matches!(error, ReloadError::Policy(_)), "{error}");
    get(service.address, "/healthz", &third).await.unwrap();
    service.end().await;
}

/// Connections that never are encrypted end, and are counted.
#[tokio::test]
async fn a_handshake_must_come_to_its_end() {
    let folder = TempDir::new().unwrap();
    let trusted = certify(&folder);
    let tls = settings_of(&folder);
    let service = Running::start_with(POLICY, |settings| {
        settings.tls = Some(tls);
        settings.limits.body_time = Duration::from_millis(300);
    })
    .await;
    // The beginnings of a record, and something else.
    let begun: [&[u8]; 4] = [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1"];
    for begun in begun {
        let mut stream = TcpStream::connect(service.address).await.unwrap();
        stream.write_all(begun).await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
    let metrics = get(service.admin, "/metrics", &trusted).await.unwrap();
    let counted = "\ntollgate_connections_not_encrypted_total 4\n";
    assert!(metrics.contains(counted), "{metrics}");
    assert!(metrics.contains("\ntollgate_connections 0\n"), "{metrics}");
    service.end().await;
}

#[tokio::test]
async fn the_client_chooses_a_version_of_http() {
    let folder = TempDir::new().unwrap();
    let trusted = certify(&folder);
    let tls = settings_of(&folder);
    let service = Running::start_with(POLICY, |settings| settings.tls = Some(tls)).await;
    for (offered, chosen) in [
        (&["h2", "http/1.1"][..], Some("h2")),
        (&["http/1.1"], Some("http/1.1")),
        (&[], None),
    ] {
        let mut config = config(&trusted);
        config.alpn_protocols = offered.iter().map(|it| it.as_bytes().to_vec()).collect();
        let stream = connect(service.address, config).await.unwrap();
        let (_, connection) = stream.get_ref();
        assert_eq!(connection.alpn_protocol(), chosen.map(str::as_bytes));
    }
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
    let files = format!("the certificate in {chain} and the key in {key}: ");
    assert!(said.starts_with(&files), "{said}");
}
