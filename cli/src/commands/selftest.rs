//! `diffclf selftest`: does this program compute on this machine what it should?

use crate::print::print;
use diffclf_report::selftest::table;
use diffclf_report::text::table_text;
use diffclf_run::error::{Error, Result};
use diffclf_run::{Silent, selftest};
use std::time::Instant;

/// Check this program on this machine, in under a minute.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit code 0 if every check passed, 1 otherwise.")]
pub struct Args {}

/// Runs the command.
pub fn run(_: Args) -> Result<()> {
    let begin = Instant::now();
    let checks = selftest::run(&Silent);
    print(&table_text(&table(&checks)))?;
    let count = checks.len();
    let failed = checks.iter().filter(|check| !check.passed).count();
    if failed > 0 {
        return Err(Error::Failed(format!(
            "{failed} of {count} checks failed: do not trust results on this machine, and please report the table above"
        )));
    }
    print(&format!(
        "All {count} checks passed in {:.0} s.\n",
        begin.elapsed().as_secs_f64()
    ))
}
