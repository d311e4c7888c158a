//! `Stop`: a first Ctrl-C (or SIGTERM) asks a long command to save and end; a second one ends it at once.

use crate::error::EXIT_INTERRUPTED;
use crate::print::note;
use crate::signals::Ignored;
use diffclf_run::company::company;
use diffclf_run::{Error, Result};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A signal has come.
static ASKED: AtomicBool = AtomicBool::new(false);
/// The signals are ours.
static INSTALLED: Mutex<bool> = Mutex::new(false);

/// Whether the user asked to stop.
pub struct Stop;

impl Stop {
    /// Takes over the signals, the first time it is called.
    pub fn install() -> Result<Self> {
        let mut installed = INSTALLED
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if !*installed {
            // Whoever set a signal aside (nohup) has decided for us.
            let ignored = Ignored::now();
            ctrlc::set_handler(|| {
                if ASKED.swap(true, Ordering::SeqCst) {
                    // Files are whole at any moment, so this loses nothing but the steps since the last checkpoint.
                    std::process::exit(i32::from(EXIT_INTERRUPTED));
                }
                note(match company() {
                    None => "stopping after this step; once more to stop at once",
                    Some(_) => {
                        "stopping after this step, or now if one of the processes is gone: the last checkpoint goes on with the same command and --resume"
                    }
                });
            })
            .map_err(|error| Error::Failed(format!("signals cannot be handled: {error}")))?;
            ignored.restore();
            *installed = true;
        }
        Ok(Self)
    }

    /// A signal has come.
    pub fn asked(&self) -> bool {
        ASKED.load(Ordering::SeqCst)
    }
}
