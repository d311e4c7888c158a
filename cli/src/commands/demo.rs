//! `diffclf demo`: why score matching alone cannot learn how much weight each mode has, and what cures it.

use crate::machine::MachineArgs;
use crate::print::print;
use crate::terminal::Terminal;
use diffclf_experiments::demo::Demo;
use diffclf_report::text::table_text;
use diffclf_run::error::{Error, Result};
use diffclf_run::outputs;
use std::path::PathBuf;

const PAGE: &str = "diffclf-demo.html";

/// See in at most two minutes what the program is for.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Trains two small models of a mixture with mode weights 2/3 and 1/3, prints a table and writes a page\n\
                  with pictures. Without -o, an existing page is not touched: the new one gets the next free number."
)]
pub struct Args {
    /// The page [default: diffclf-demo.html]
    #[arg(short, long, value_name = "PAGE.html")]
    output: Option<PathBuf>,
    /// Replace an existing page
    #[arg(long)]
    force: bool,
    /// A fraction of the work: to see that it runs, not what it learns
    #[arg(long)]
    quick: bool,
    /// No progress on the terminal
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    machine: MachineArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let output = page_path(&args)?;
    let machine = args.machine.machine();
    let demo = Demo::run(args.quick, &machine, &Terminal::new(args.quiet))?;
    let html = demo.html();
    outputs::write(&output, args.force, |writer| {
        Ok(writer.write_all(html.as_bytes())?)
    })?;
    let (weights, truth) = demo.first_weights();
    print(&format!(
        "{}\nScore matching alone gives the first mode a weight of {:.2}, the classification between noise levels {:.2}; the \
         truth is {:.2}.\nPictures: {}\n",
        table_text(&demo.table()),
        weights[0],
        weights[1],
        truth,
        output.display()
    ))
}

/// The page's name: as asked, or the first free one.
fn page_path(args: &Args) -> Result<PathBuf> {
    if let Some(path) = &args.output {
        outputs::plan([path.as_path()], args.force)?;
        return Ok(path.clone());
    }
    let numbered = (2..1000).map(|k| PathBuf::from(format!("diffclf-demo-{k}.html")));
    std::iter::once(PathBuf::from(PAGE))
        .chain(numbered)
        .find(|path| outputs::refuse_existing(path, args.force).is_ok())
        .ok_or_else(|| Error::Exists { path: PAGE.into() })
        .and_then(|path| outputs::plan([path.as_path()], args.force).map(|()| path))
}
