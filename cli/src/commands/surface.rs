//! `diffclf surface`: the free energy along one or two columns, in kT.

use crate::opened::{ModelArgs, RecordArgs};
use crate::print::print;
use diffclf_report::page::Table;
use diffclf_report::text::table_text;
use diffclf_run::error::{Error, Result};
use diffclf_run::files::model_path;
use diffclf_run::judging::asked_files;
use diffclf_run::outputs;
use diffclf_run::questions::{Along, Sample, Surface, surfaces};
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf surface runs/mine --along phi -o phi.csv
  diffclf surface runs/mine --along phi --along psi --bins 36 -o surface.csv
  diffclf surface runs/mine data.npy --along \"sqrt(x0^2 + x1^2)\" -o radius.csv

The free energy is -log of the density along the columns, all others integrated out, in kT above its
lowest bin. The table has the middle of each bin, then free energy and standard error by the learned
density and, where there are rows, by their histogram. The error of the density is that of the
integral; what the model itself is wrong by shows in the difference of both. An expression instead
of a column is a free energy along an observable: diffclf weight --help tells what can be written.";

/// Free energy along one or two columns.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Rows to compare with [default: those it was trained on, where they are found]
    #[arg(value_name = "DATA.npy")]
    data: Option<PathBuf>,
    /// Weights of those rows: a .npy file with one number each [default: those of the training, for the very rows of the training]
    #[arg(long, value_name = "WEIGHTS.npy")]
    weights: Option<PathBuf>,
    /// A column, or a number made of columns; given twice, a surface
    #[arg(long, value_name = "COLUMN", required = true)]
    along: Vec<String>,
    /// Bins along each
    #[arg(long, value_name = "N", default_value_t = 36)]
    bins: usize,
    /// Draws of the integral
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    draws: usize,
    /// Seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Result: a .csv table
    #[arg(short, long, value_name = "OUT.csv")]
    output: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.record.check(args.output.as_deref())?;
    let (model, energy) = args.model.open()?;
    let content = &model.content;
    let along = args
        .along
        .iter()
        .map(|text| Along::new(text, content))
        .collect::<Result<Vec<_>>>()?;
    if args.draws == 0 {
        return Err(Error::setting("draws", 0, "at least 1"));
    }
    let path = model_path(&args.model.model);
    let files = asked_files(content, &path, args.data.clone(), args.weights.clone())?;
    let Some(density) = Sample::density(content, &energy, args.draws, args.seed)? else {
        return Err(Error::Usage(
            "the energy of this model stands on one Gaussian, from which its density cannot be integrated well; train with --base mixture".into(),
        ));
    };
    let data = match &files {
        Some((file, weights)) => Some(Sample::file(content, file, weights.as_deref())?),
        None => None,
    };
    let samples: Vec<&Sample> = [Some(&density), data.as_ref()]
        .into_iter()
        .flatten()
        .collect();
    let found = surfaces(&samples, &along, args.bins)?;
    if let Some(path) = &args.output {
        outputs::write(path, args.record.force, |writer| {
            Ok(writer.write_all(table(&found).as_bytes())?)
        })?;
    }
    let labels: Vec<&str> = along.iter().map(|a| a.label.as_str()).collect();
    let seen = |surface: &Surface| surface.free_energy.iter().flatten().count();
    let mut rows = Vec::new();
    for (name, surface) in ["density", "data"].iter().zip(&found) {
        let highest = surface
            .free_energy
            .iter()
            .flatten()
            .fold(0.0_f64, |a, b| a.max(*b));
        rows.push(vec![
            (*name).to_string(),
            format!("{} of {}", seen(surface), surface.share.len()),
            format!("{highest:.2}"),
        ]);
    }
    let mut text = table_text(&Table {
        caption: format!(
            "Free energy along {} under {}",
            labels.join(" and "),
            args.model.name()
        ),
        header: ["", "bins seen", "highest, kT"].map(String::from).to_vec(),
        rows,
    });
    if let [density, data] = found.as_slice() {
        let counts = samples[1].len() as f64;
        if let Some((rms, bins)) = difference(density, data, 20.0 / counts) {
            text += &format!(
                "  both differ by {rms:.3} kT (rms over the {bins} bins with at least 20 rows)\n"
            );
        }
    }
    print(&text)?;
    args.record.write(|| {
        json!({
            "command": "surface",
            "model": args.model.name(),
            "data": files.as_ref().map(|(file, _)| file),
            "data_weights": files.as_ref().and_then(|(_, weights)| weights.as_ref()),
            "draws": args.draws,
            "seed": args.seed,
            "density": found.first(),
            "histogram": found.get(1),
        })
    })
}

/// Root mean square of the difference over bins of at least this share of the rows, their mean difference taken off.
fn difference(density: &Surface, data: &Surface, least: f64) -> Option<(f64, usize)> {
    let gaps: Vec<f64> = density
        .free_energy
        .iter()
        .zip(&data.free_energy)
        .zip(&data.share)
        .filter(|(_, share)| **share >= least)
        .filter_map(|((a, b), _)| Some((*a)? - (*b)?))
        .collect();
    let count = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / count;
    let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
    (!gaps.is_empty()).then(|| (square.sqrt(), gaps.len()))
}

/// Bins in rows; what was not seen is left empty.
fn table(found: &[Surface]) -> String {
    let Some(first) = found.first() else {
        return String::new();
    };
    let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
    let mut header: Vec<String> = first.axes.iter().map(quoted).collect();
    header.extend(["free_energy", "error", "data_free_energy", "data_error"].map(String::from));
    header.truncate(first.axes.len() + 2 * found.len());
    let mut text = header.join(",") + "\n";
    let bins = first.edges[0].len() - 1;
    for k in 0..first.share.len() {
        let places = match first.axes.len() {
            1 => vec![k],
            _ => vec![k / bins, k % bins],
        };
        let mut cells: Vec<String> = places
            .iter()
            .zip(&first.edges)
            .map(|(i, edges)| format!("{:.9}", 0.5 * (edges[*i] + edges[i + 1])))
            .collect();
        for surface in found {
            for value in [surface.free_energy[k], surface.error[k]] {
                cells.push(value.map_or(String::new(), |x| format!("{x:.6}")));
            }
        }
        text += &(cells.join(",") + "\n");
    }
    text
}
