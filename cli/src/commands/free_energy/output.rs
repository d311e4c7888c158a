//! How the free-energy commands answer: on the terminal, in a JSON record, on a page.

use crate::print::print;
use diffclf_report::free_energy::Sheet;
use diffclf_run::error::Result;
use diffclf_run::outputs;
use std::path::PathBuf;

/// Where results go besides the terminal.
#[derive(Debug, Clone, clap::Args)]
pub struct Output {
    /// Write everything as JSON too
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write a page with the tables and pictures
    #[arg(long, value_name = "PAGE.html", help_heading = "Output")]
    pub page: Option<PathBuf>,
    /// Replace existing files
    #[arg(long, help_heading = "Output")]
    pub force: bool,
}

impl Output {
    /// Refuses before any work what could not be written after it.
    pub fn check(&self) -> Result<()> {
        let paths = [&self.json, &self.page].into_iter().flatten();
        outputs::plan(paths.map(PathBuf::as_path), self.force)
    }

    /// Prints tables and notices, and writes the files.
    pub fn give(&self, sheet: &Sheet) -> Result<()> {
        print(&sheet.text())?;
        if let Some(path) = &self.json {
            let record = sheet.json();
            outputs::write(path, self.force, |writer| {
                Ok(writeln!(writer, "{record:#}")?)
            })?;
        }
        if let Some(path) = &self.page {
            let html = sheet.html();
            outputs::write(path, self.force, |writer| {
                Ok(writer.write_all(html.as_bytes())?)
            })?;
        }
        Ok(())
    }
}
