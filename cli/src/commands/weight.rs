//! `diffclf weight`: how much of the probability lies in a region, by the data, the learned density and generated samples.

use crate::opened::{ModelArgs, RecordArgs};
use crate::print::{note, print};
use crate::terminal::Terminal;
use diffclf::expression::Expression;
use diffclf::metric::Estimate;
use diffclf_report::page::Table;
use diffclf_report::text::table_text;
use diffclf_run::error::{Error, Result};
use diffclf_run::files::model_path;
use diffclf_run::judging::asked_files;
use diffclf_run::questions::{Sample, names};
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf weight runs/mine --where \"phi > 0\"
  diffclf weight runs/mine --where \"phi > 0 and psi < 1\" --where \"x0^2 + x1^2 < 4\"
  diffclf weight runs/mine new_rows.npy --where \"-pi/2 < phi < 0\" --json weights.json

Columns are called by their names, or x0, x1, ... in their order; `a name with blanks` stands in
backticks. Numbers: + - * / ^, pi, sin cos tan asin acos atan atan2 sinh cosh tanh exp log sqrt abs
min max. Conditions: < <= > >= == !=, and, or, not; a < x < b.

Data: the share of rows, with an error that counts rows of a series for what they are worth.
Density: the integral of the learned density over the region, with the error of the integral; it
needs an energy on a mixture, as models of given rows have. Samples: the share of generated ones.";

/// Weight of a region, in data, density and samples.
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
    /// Condition on the columns; may be given several times
    #[arg(long = "where", value_name = "CONDITION", required = true)]
    regions: Vec<String>,
    /// Draws of the integral
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    draws: usize,
    /// Samples to generate, 0 for none
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    samples: usize,
    /// Seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    record: RecordArgs,
}

fn shown(estimate: Option<Estimate>) -> String {
    match estimate {
        Some(Estimate { mean, error }) => format!("{mean:.5} ± {error:.5}"),
        None => "not known".into(),
    }
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.record.check([])?;
    let (model, energy) = args.model.open()?;
    let content = &model.content;
    let regions = args
        .regions
        .iter()
        .map(|text| Expression::condition(text, names(content), content.spec.dim))
        .collect::<diffclf::Result<Vec<_>>>()?;
    if args.draws == 0 {
        return Err(Error::setting("draws", 0, "at least 1"));
    }
    let path = model_path(&args.model.model);
    let files = asked_files(content, &path, args.data.clone(), args.weights.clone())?;
    let data = match &files {
        Some((file, weights)) => Some(Sample::file(content, file, weights.as_deref())?),
        None => None,
    };
    let density = Sample::density(content, &energy, args.draws, args.seed)?;
    let watch = Terminal::new(args.record.quiet);
    let samples = match args.samples {
        0 => None,
        // An interpolant has no noise to start from.
        _ if content.spec.process.is_interpolant() => None,
        number => Some(Sample::generated(
            content, &energy, number, args.seed, &watch,
        )?),
    };
    let all = [data.as_ref(), density.as_ref(), samples.as_ref()];
    let weights: Vec<[Option<Estimate>; 3]> = regions
        .iter()
        .map(|region| all.map(|sample| sample.map(|sample| sample.weight(region))))
        .collect();
    let row = |(region, weights): (&Expression, &[Option<Estimate>; 3])| {
        let mut row = vec![region.to_string()];
        row.extend(weights.map(shown));
        row
    };
    let rows_of = |sample: Option<&Sample>| sample.map_or(0, Sample::len);
    let table = Table {
        caption: format!(
            "Weights under {} ({} rows of data, {} draws of the density, {} samples)",
            args.model.name(),
            rows_of(all[0]),
            rows_of(all[1]),
            rows_of(all[2])
        ),
        header: ["where", "data", "density", "samples"]
            .map(String::from)
            .to_vec(),
        rows: regions.iter().zip(&weights).map(row).collect(),
    };
    print(&table_text(&table))?;
    if let Some(effective) = density
        .as_ref()
        .map(Sample::effective)
        .filter(|e| *e < 0.05)
    {
        note(&format!(
            "warning: the draws of the integral are worth {:.1} % of their number: the network changes its mixture much; take more with --draws",
            100.0 * effective
        ));
    }
    args.record.write(|| {
        let of = |(region, [data, density, samples]): (&Expression, &[Option<Estimate>; 3])| {
            json!({"where": region.to_string(), "data": data, "density": density, "samples": samples})
        };
        json!({
            "command": "weight",
            "model": args.model.name(),
            "data": files.as_ref().map(|(file, _)| file),
            "data_weights": files.as_ref().and_then(|(_, weights)| weights.as_ref()),
            "draws": args.draws,
            "samples": args.samples,
            "seed": args.seed,
            "effective_draws": density.as_ref().map(Sample::effective),
            "weights": regions.iter().zip(&weights).map(of).collect::<Vec<_>>(),
        })
    })
}
