//! A private server for an example.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// A server on a socket in a folder of its own.
pub(crate) struct PrivateServer {
    program: String,
    folder: PathBuf,
    child: Option<Child>,
}

impl PrivateServer {
    /// Starts `redis-server`, or the program that TOLLGATE_REDIS_SERVER names. `None` if there is
    /// none.
    pub(crate) fn start() -> Result<Option<Self>, Box<dyn Error>> {
        let program = std::env::var("TOLLGATE_REDIS_SERVER");
        let program = program.unwrap_or_else(|_| "redis-server".into());
        let mut version = Command::new(&program);
        if version
            .arg("--version")
            .stdout(Stdio::null())
            .status()
            .is_err()
        {
            return Ok(None);
        }
        let folder = std::env::temp_dir().join(format!("tollgate-example-{}", number()?));
        std::fs::create_dir_all(&folder)?;
        let mut server = Self {
            program,
            folder,
            child: None,
        };
        server.run()?;
        Ok(Some(server))
    }

    pub(crate) fn run(&mut self) -> Result<(), Box<dyn Error>> {
        let mut command = Command::new(&self.program);
        command.args([
            "--port",
            "0",
            "--save",
            "",
            "--unixsocket",
            "socket",
            "--dir",
        ]);
        command.arg(&self.folder).current_dir(&self.folder);
        self.child = Some(command.stdout(Stdio::null()).spawn()?);
        Ok(())
    }

    pub(crate) fn url(&self) -> String {
        format!(
            "unix://{}",
            Path::new(&self.folder).join("socket").display()
        )
    }

    pub(crate) fn kill(&mut self) -> Result<(), Box<dyn Error>> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }
}

/// Returns the numbers of this process and of its next server.
fn number() -> Result<String, Box<dyn Error>> {
    static STARTED: Mutex<u32> = Mutex::new(0);
    let mut started = STARTED.lock()?;
    *started += 1;
    Ok(format!("{}-{started}", std::process::id()))
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        let _ = self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
