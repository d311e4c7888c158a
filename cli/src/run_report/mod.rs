//! `diffclf report`: one self-contained page about a run, for people who were not there.

mod album;
mod citation;
mod film;
mod sections;
mod training;
mod view;

use crate::diagnose;
use crate::error::{Error, Result};
use crate::exact::known_path;
use crate::files::{model_path, read_model, refuse_overwrite, write_atomic};
use crate::judging::{Judging, log_lines};
use crate::machine::Machine;
use crate::print::note;
use crate::progress::Progress;
use crate::run_folder::{CONFIG, LOG, REPORT};
use diffclf::energy::LearnedEnergy;
use diffclf::energy::exact::ExactPath;
use diffclf::metric::diagnose::Diagnosis;
use diffclf::metric::{Evaluation, EvaluationSettings};
use diffclf::model::Content;
use std::path::{Path, PathBuf};
use std::time::Instant;
use view::View;

const EXAMPLES: &str = "\
Examples:
  diffclf report runs/mine --data samples.npy
  diffclf report runs/mine --data samples.npy -o page.html --figures pictures
  diffclf report runs/mog40 --pair 0,5          a built-in system needs no file

The page needs nothing but a browser: no network, no other file. `diffclf train` writes one at its end. Pictures of
data in more than two dimensions show two columns (--pair, counted from 0) or the two principal axes.";

/// Levels of the comparison with a known system.
const MOST_LEVELS: usize = 64;

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
    machine: Machine,
}

/// Everything the page shows.
struct Material {
    name: String,
    content: Content,
    energy: LearnedEnergy<f32>,
    judging: Option<Judging>,
    diagnosis: Option<Diagnosis>,
    /// Why there is no diagnosis.
    problem: Option<String>,
    exact: Option<ExactPath>,
    evaluation: Option<Evaluation>,
    log: Vec<serde_json::Value>,
    /// The settings file of the run, if it is there.
    config: Option<String>,
    view: View,
    seed: u64,
    /// How to make the page again.
    command: String,
}

/// What is asked for.
struct Wish<'a> {
    model: PathBuf,
    data: [Option<&'a Path>; 2],
    pair: Option<[usize; 2]>,
    points: usize,
    seed: u64,
    machine: &'a Machine,
    quiet: bool,
    command: String,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let model = model_path(&args.run);
    let output = args
        .output
        .clone()
        .unwrap_or_else(|| model.with_file_name(REPORT));
    refuse_overwrite(&output, args.force)?;
    let pair = args.pair.as_deref().map(parse_pair).transpose()?;
    let shown = |flag: &str, path: &Option<PathBuf>| {
        path.as_ref()
            .map_or(String::new(), |path| format!(" {flag} {}", path.display()))
    };
    let wish = Wish {
        model,
        data: [args.data.as_deref(), args.end.as_deref()],
        pair,
        points: args.points,
        seed: args.seed,
        machine: &args.machine,
        quiet: args.quiet,
        command: format!(
            "diffclf report {}{}{}",
            args.run.display(),
            shown("--data", &args.data),
            shown("--end", &args.end)
        ),
    };
    write(&wish, &output, args.figures.as_deref(), args.force)?;
    if !args.quiet {
        note(&format!("page: {}", output.display()));
    }
    Ok(())
}

/// The page that `diffclf train` leaves in its run folder. A run is no failure because its page could not be written.
pub fn after_training(folder: &Path, data: [Option<&Path>; 2], machine: &Machine, quiet: bool) {
    let model = model_path(folder);
    let flag = data[0].map_or(String::new(), |path| format!(" --data {}", path.display()));
    let output = model.with_file_name(REPORT);
    let wish = Wish {
        model,
        data,
        pair: None,
        points: 2048,
        seed: 0,
        machine,
        quiet: true,
        command: format!("diffclf report {}{flag}", folder.display()),
    };
    match write(&wish, &output, None, true) {
        Ok(()) if quiet => {}
        Ok(()) => note(&format!("report: {}", output.display())),
        Err(error) => note(&format!(
            "warning: the model is saved, but its report could not be written: {error}"
        )),
    }
}

fn write(wish: &Wish<'_>, output: &Path, figures: Option<&Path>, force: bool) -> Result<()> {
    let begin = Instant::now();
    let material = gather(wish)?;
    let (page, album) = sections::page(&material, begin);
    if let Some(folder) = figures {
        album.write(folder, force)?;
    }
    let html = page.html();
    write_atomic(output, |writer| Ok(writer.write_all(html.as_bytes())?))
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

/// Reads and computes; only the model itself must be there.
fn gather(wish: &Wish<'_>) -> Result<Material> {
    let model = read_model(&wish.model)?;
    let content = model.content.clone();
    let dim = content.spec.dim;
    if let Some(column) = wish
        .pair
        .and_then(|pair| pair.into_iter().find(|k| *k >= dim))
    {
        return Err(Error::Usage(format!(
            "--pair names column {column}, but the model has {dim} (0 to {})",
            dim - 1
        )));
    }
    let energy = model.energy(wish.machine.pool()?, wish.machine.isa()?)?;
    let mut progress = Progress::new("report", 3, 0, wish.quiet);
    let mut judging = match Judging::gather(&content, wish.data, &wish.model) {
        Ok(judging) => Ok(judging),
        // Data that were named must be there; without any, the page is shorter.
        Err(error) if wish.data.iter().any(Option::is_some) => return Err(error),
        Err(error) => Err(error.to_string()),
    };
    if let Ok(judging) = &mut judging {
        judging.generate(
            &content,
            &energy,
            wish.points.min(2048),
            wish.seed,
            &mut |_| {},
        )?;
    }
    progress.set(1, || "samples".into());
    let settings = diagnose::settings(wish.points, wish.seed);
    let diagnosis = judging.as_ref().map_err(String::clone).and_then(|judging| {
        let found = judging.diagnosis(&content, &energy, settings, &mut |_| {});
        found.map_err(|error| error.to_string())
    });
    progress.set(2, || "checks".into());
    let exact = known_path(&content)?;
    let evaluation = match &exact {
        Some(exact) => {
            let levels = content.spec.grid.levels().min(MOST_LEVELS);
            let settings = EvaluationSettings {
                samples_per_level: 512,
                classification_samples_per_level: 32,
                seed: wish.seed,
                ..EvaluationSettings::default()
            };
            let grid = content.spec.grid.with_levels(levels)?;
            Some(Evaluation::run(
                &energy,
                exact,
                &grid,
                settings,
                &mut |_, _| {},
            )?)
        }
        None => None,
    };
    progress.finish("done");
    let judging = judging.ok();
    let name = wish.model.parent().and_then(Path::file_name);
    Ok(Material {
        name: name.map_or("model".into(), |name| name.to_string_lossy().into_owned()),
        view: View::new(&content, judging.as_ref(), wish.pair),
        config: std::fs::read_to_string(wish.model.with_file_name(CONFIG)).ok(),
        log: log_lines(&wish.model.with_file_name(LOG)),
        problem: diagnosis.as_ref().err().cloned(),
        diagnosis: diagnosis.ok(),
        exact,
        evaluation,
        judging,
        energy,
        content,
        seed: wish.seed,
        command: wish.command.clone(),
    })
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
