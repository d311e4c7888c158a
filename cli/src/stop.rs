//! `Stop`: a first Ctrl-C (or SIGTERM) asks a long command to save and end; a second one ends it at once.

use crate::error::{EXIT_INTERRUPTED, Error, Result};
use crate::print::note;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user asked to stop.
pub struct Stop {
    asked: Arc<AtomicBool>,
}

impl Stop {
    /// Takes over the signals; once per process.
    pub fn install() -> Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let flag = asked.clone();
        let handler = move || {
            if flag.swap(true, Ordering::SeqCst) {
                // Files are whole at any moment, so this loses nothing but the steps since the last checkpoint.
                std::process::exit(i32::from(EXIT_INTERRUPTED));
            }
            note("stopping after this step; once more to stop at once");
        };
        ctrlc::set_handler(handler)
            .map_err(|error| Error::Failed(format!("signals cannot be handled: {error}")))?;
        Ok(Self { asked })
    }

    /// A signal has come.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }
}
