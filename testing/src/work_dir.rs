//! A directory of its own for each server, removed with it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A new directory under the system's directory for temporary files.
#[derive(Debug)]
pub(crate) struct WorkDir {
    path: PathBuf,
}

impl WorkDir {
    pub(crate) fn new() -> io::Result<Self> {
        // Absolute, because the server runs in another directory than the test.
        let parent = std::path::absolute(std::env::temp_dir())?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("zookeeper-testing-{}-{number}", std::process::id());
            let path = parent.join(name);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                // An earlier process with the same id was killed: its directory is not ours.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // There is nobody to tell: what cannot be removed stays with the temporary files.
        fs::remove_dir_all(&self.path).ok();
    }
}
