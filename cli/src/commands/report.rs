//! `diffclf report`: one self-contained page about a run, for people who were not there.

use crate::error::told;
use crate::machine::MachineArgs;
use crate::opened::WeightArgs;
use crate::print::note;
use crate::terminal::Terminal;
use diffclf_report::run::{Wish, write};
use diffclf_report::verdict::summary;
use diffclf_run::files::model_path;
use diffclf_run::judging::GivenFiles;
use diffclf_run::machine::Machine;
use diffclf_run::outputs;
use diffclf_run::run_folder::REPORT;
use diffclf_run::{Error, Result, Silent};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  diffclf report runs/mine --data samples.npy
  diffclf report runs/mine --data samples.npy -o page.html --figures pictures
  diffclf report runs/mog40 --pair 0,5          a built-in system needs no file

The page needs nothing but a browser: no network, no other file. `diffclf train` writes one at its
end. Pictures of data in more than two dimensions show two columns (--pair, counted from 0) or the
two principal axes.";

/// One page about a run: densities, samples, verdicts, losses, settings, citation.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Run folder, or model file
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Rows to judge the model by [default: fresh rows of the system it was trained on]
    #[arg(long, value_name = "DATA.npy")]
    data: Option<PathBuf>,
    /// Rows of the second endpoint, for an interpolant
    #[arg(long, value_name = "DATA1.npy")]
    end: Option<PathBuf>,
    #[command(flatten)]
    weights: WeightArgs,
    /// The page [default: report.html beside the model]
    #[arg(short, long, value_name = "PAGE.html")]
    output: Option<PathBuf>,
    /// Write the pictures into this folder too, as SVG, and densities as PNG
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    /// Columns to show of data in more than two dimensions, counted from 0 [default: the principal axes]
    #[arg(long, value_name = "I,J")]
    pair: Option<String>,
    /// Points of the larger checks
    #[arg(long, value_name = "N", default_value_t = 4096)]
    points: usize,
    /// Seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Replace an existing page and pictures
    #[arg(long)]
    force: bool,
    /// No progress on the terminal
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    machine: MachineArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let model = model_path(&args.run);
    let output = args
        .output
        .clone()
        .unwrap_or_else(|| model.with_file_name(REPORT));
    outputs::plan([output.as_path()], args.force)?;
    let pair = args.pair.as_deref().map(parse_pair).transpose()?;
    let shown = |flag: &str, path: &Option<PathBuf>| {
        path.as_ref()
            .map_or(String::new(), |path| format!(" {flag} {}", path.display()))
    };
    let wish = Wish {
        model,
        files: GivenFiles {
            data: [args.data.as_deref(), args.end.as_deref()],
            weights: [
                args.weights.weights.as_deref(),
                args.weights.end_weights.as_deref(),
            ],
        },
        pair,
        points: Some(args.points),
        seed: args.seed,
        machine: &args.machine.machine(),
        watch: &Terminal::new(args.quiet),
        command: format!(
            "diffclf report {}{}{}{}{}",
            args.run.display(),
            shown("--data", &args.data),
            shown("--end", &args.end),
            shown("--weights", &args.weights.weights),
            shown("--end-weights", &args.weights.end_weights)
        ),
    };
    write(&wish, &output, args.figures.as_deref(), args.force)?;
    if !args.quiet {
        note(&format!("page: {}", output.display()));
    }
    Ok(())
}

/// The page that `diffclf train` leaves in its run folder. A run is no failure because its page could not be written.
pub fn after_training(
    folder: &Path,
    data: [Option<&Path>; 2],
    machine: &Machine,
    replace: bool,
    quiet: bool,
) {
    let model = model_path(folder);
    let flag = data[0].map_or(String::new(), |path| format!(" --data {}", path.display()));
    let output = model.with_file_name(REPORT);
    let wish = Wish {
        model,
        files: GivenFiles {
            data,
            ..GivenFiles::default()
        },
        pair: None,
        points: None,
        seed: 0,
        machine,
        watch: &Silent,
        command: format!("diffclf report {}{flag}", folder.display()),
    };
    match write(&wish, &output, None, replace) {
        Ok(_) if quiet => {}
        Ok(diagnosis) => {
            if let Some(diagnosis) = diagnosis {
                note(&summary(&*diagnosis));
            }
            note(&format!("report: {}", output.display()));
        }
        Err(error) => note(&format!(
            "warning: the model is saved, but its report could not be written: {}",
            told(&error)
        )),
    }
}

fn parse_pair(text: &str) -> Result<[usize; 2]> {
    let parts: Vec<usize> = text
        .split(',')
        .flat_map(|part| part.trim().parse())
        .collect();
    match parts[..] {
        [i, j] if i != j => Ok([i, j]),
        _ => Err(Error::Usage(format!(
            "--pair is '{text}', expected two different columns counted from 0, such as 0,3"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_pair;

    #[test]
    fn pairs_are_two_different_columns() {
        assert_eq!(parse_pair("0, 3").unwrap(), [0, 3]);
        for text in ["1", "1,1", "1,2,3", "a,b", ""] {
            assert!(parse_pair(text).unwrap_err().to_string().contains("--pair"));
        }
    }
}
