//! The state outlives the process.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tollgate_server::{Server, Settings, StartError, StateSettings};

use crate::Running;

const POLICY: &str = "[[rule]]\nname = 'user'\nkey = 'user'\nlimit = '100/365d'";

fn ann() -> Value {
    json!({"facts": {"user": "ann"}})
}

async fn start(file: &Path) -> Running {
    Running::start_with(POLICY, |settings| {
        settings.state = Some(StateSettings::new(file))
    })
    .await
}

async fn remaining(service: &Running) -> Value {
    service.decide(ann()).await["limits"][0]["remaining"].clone()
}

#[tokio::test]
async fn a_service_that_ends_loses_nothing() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("limits.state");
    let service = start(&file).await;
    for _ in 0..40 {
        service.decide(ann()).await;
    }
    service.end().await;
    let service = start(&file).await;
    assert_eq!(remaining(&service).await, 59);
    service.end().await;
    let service = start(&file).await;
    assert_eq!(remaining(&service).await, 58);
    service.end().await;
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["limits.state", "limits.state.lock"]);
}

#[tokio::test]
async fn the_state_is_saved_every_few_seconds() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("limits.state");
    let state = |settings: &mut Settings| {
        let mut state = StateSettings::new(&file);
        state.every = Duration::from_millis(50);
        settings.state = Some(state);
    };
    let service = Running::start_with(POLICY, state).await;
    service.decide(ann()).await;
    // A save that begins after the decision has it.
    let saves = service.metric("tollgate_state_saves_total").await;
    while service.metric("tollgate_state_saves_total").await < saves + 2 {
        tokio::task::yield_now().await;
    }
    assert!(
        service
            .metric("tollgate_state_saved_timestamp_seconds")
            .await
            > 1_700_000_000
    );
    // Another process reads it while this one runs.
    let copy = folder.path().join("copy");
    fs::copy(&file, &copy).unwrap();
    let other = start(&copy).await;
    assert_eq!(remaining(&other).await, 98);
    other.end().await;
    service.end().await;
}

#[tokio::test]
async fn a_state_that_is_damaged_is_put_aside() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("limits.state");
    let service = start(&file).await;
    service.decide(ann()).await;
    service.end().await;
    let good = fs::read(&file).unwrap();
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    for bad in [
        b"no state".to_vec(),
        Vec::new(),
        good[..good.len() - 1].to_vec(),
        flipped,
    ] {
        fs::write(&file, &bad).unwrap();
        let mut settings = Settings::default();
        let mut state = StateSettings::new(&file);
        state.strict = true;
        settings.state = Some(state);
        let error = Server::bind(settings).await.unwrap_err();
        assert!(matches!(error, StartError::State { .. }), "{error}");
        let start_of_error = format!("can't use the state in {}: ", file.display());
        assert!(error.to_string().starts_with(&start_of_error), "{error}");
        assert_eq!(fs::read(&file).unwrap(), bad);

        let service = start(&file).await;
        assert_eq!(remaining(&service).await, 99);
        service.end().await;
        assert_eq!(remaining_after_restart(&file).await, 98);
        let names = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path());
        let aside: Vec<_> = names
            .filter(|it| it.to_string_lossy().contains(".bad-"))
            .collect();
        assert_eq!(aside.len(), 1);
        assert_eq!(fs::read(&aside[0]).unwrap(), bad);
        fs::remove_file(&aside[0]).unwrap();
    }
}

async fn remaining_after_restart(file: &Path) -> Value {
    let service = start(file).await;
    let remaining = remaining(&service).await;
    service.end().await;
    remaining
}

/// Also if it happens twice in a second, no file takes the place of another one.
#[tokio::test]
async fn all_that_is_put_aside_stays() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("limits.state");
    for n in 0..20 {
        fs::write(&file, format!("no state {n}")).unwrap();
        start(&file).await.end().await;
    }
    let names = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path());
    let aside = names.filter(|it| it.to_string_lossy().contains(".bad-"));
    let mut texts: Vec<_> = aside.map(|it| fs::read_to_string(it).unwrap()).collect();
    texts.sort();
    let mut expected: Vec<_> = (0..20).map(|n| format!("no state {n}")).collect();
    expected.sort();
    assert_eq!(texts, expected);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_has_one_process() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("limits.state");
    let service = start(&file).await;
    service.decide(ann()).await;
    let mut settings = Settings::default();
    settings.listen = "127.0.0.1:0".parse().unwrap();
    settings.admin = None;
    settings.state = Some(StateSettings::new(&file));
    let error = Server::bind(settings.clone()).await.unwrap_err();
    assert!(matches!(error, StartError::StateInUse { .. }));
    let said = format!(
        "another process has the state in {}: each needs a file of its own",
        file.display()
    );
    assert_eq!(error.to_string(), said);
    service.end().await;
    Server::bind(settings).await.unwrap();
}

#[tokio::test]
async fn a_state_that_can_not_be_saved_is_counted() {
    let folder = TempDir::new().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let service = start(&inner.join("limits.state")).await;
    fs::remove_dir_all(&inner).unwrap();
    while service.metric("tollgate_state_failures_total").await == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(remaining(&service).await, 99);
    service.end().await;
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_an_error() {
    let folder = TempDir::new().unwrap();
    let mut settings = Settings::default();
    settings.state = Some(StateSettings::new(folder.path().join("no/limits.state")));
    let error = Server::bind(settings).await.unwrap_err();
    assert!(matches!(error, StartError::State { .. }), "{error}");
}

/// Another user may be able to write to the folder.
#[cfg(unix)]
#[tokio::test]
async fn what_others_left_in_the_folder_does_no_harm() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = TempDir::new().unwrap();
    let file = folder.path().join("limits.state");
    let victim = folder.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, folder.path().join("limits.state.new")).unwrap();
    let service = start(&file).await;
    service.end().await;
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    fs::remove_file(folder.path().join("limits.state.lock")).unwrap();
    symlink(&victim, folder.path().join("limits.state.lock")).unwrap();
    let mut settings = Settings::default();
    settings.state = Some(StateSettings::new(&file));
    let error = Server::bind(settings).await.unwrap_err();
    assert!(matches!(error, StartError::State { .. }), "{error}");
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}
