//! `Terminal`: long work followed by a person at a terminal, or by a log.

use crate::error::flag;
use crate::print::note;
use crate::progress::Progress;
use crate::stop::Stop;
use diffclf_run::company::agreed;
use diffclf_run::notice::Notice;
use diffclf_run::{Bar, Result, Watch};

/// Progress and notes on standard error; a signal stops the work, where it can be stopped.
pub struct Terminal {
    quiet: bool,
    stop: Option<Stop>,
}

impl Terminal {
    /// For work that a signal simply ends.
    pub fn new(quiet: bool) -> Self {
        Self { quiet, stop: None }
    }

    /// For work that saves what it has when a signal comes.
    pub fn interruptible(quiet: bool) -> Result<Self> {
        let stop = Some(Stop::install()?);
        Ok(Self { quiet, stop })
    }
}

impl Watch for Terminal {
    fn begin(&self, label: &str, total: u64, done: u64) -> Box<dyn Bar> {
        Box::new(Progress::new(label, total, done, self.quiet))
    }

    fn note(&self, text: &str) {
        if !self.quiet {
            note(text);
        }
    }

    fn notice(&self, notice: &Notice) {
        self.note(&format!("note: {}", notice.words().told(&flag)));
    }

    fn stopped(&self) -> bool {
        // Signals reach processes at different moments.
        self.stop.as_ref().is_some_and(|stop| agreed(stop.asked()))
    }
}
