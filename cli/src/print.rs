//! Standard output and error: tables with aligned columns, and a reader that leaves early is no error.

use diffclf_run::{Error, Result};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// Writes text to standard output. A closed pipe (`| head`) ends the output, not the command.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(source) if source.kind() != ErrorKind::BrokenPipe => Err(Error::Write {
            path: PathBuf::from("standard output"),
            source,
        }),
        _ => Ok(()),
    }
}

/// Writes a line to standard error. Nobody may be listening; the work goes on.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
