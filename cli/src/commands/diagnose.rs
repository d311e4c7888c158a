//! `diffclf diagnose`: is the model any good? A verdict without ground truth, in plain words with the figures behind it.

use crate::opened::{ModelArgs, RecordArgs, WeightArgs};
use crate::print::print;
use crate::terminal::Terminal;
use diffclf_report::verdict::{self, Shown};
use diffclf_run::Result;
use diffclf_run::diagnose::{Diagnosed, Diagnosing};
use diffclf_run::files::model_path;
use diffclf_run::outputs;
use serde::Serialize;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf diagnose runs/mine samples.npy
  diffclf diagnose model.safetensors new-samples.npy --json verdict.json
  diffclf diagnose runs/mog40           (a built-in system needs no file: rows are drawn afresh)

Give rows that were not trained on if you have them. If you give the very file of the training, the
rows held out there are found and used. Each check ends in pass, warn or fail, with what it means
and what to do.

Exit codes: 0 all checks passed, 4 passed with warnings, 1 a check failed, 2 wrong usage or input.";

/// Judge a model by data, without knowing the truth.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Rows to judge it by: a .npy file [default: fresh rows of the system it was trained on]
    #[arg(value_name = "DATA.npy")]
    data: Option<PathBuf>,
    /// Rows of the second endpoint, for an interpolant
    #[arg(long, value_name = "DATA1.npy")]
    end: Option<PathBuf>,
    #[command(flatten)]
    weights: WeightArgs,
    /// Points of the larger checks: more find smaller flaws
    #[arg(long, value_name = "N", default_value_t = 4096)]
    points: usize,
    /// Samples to generate and compare with the data, 0 for none
    #[arg(long, value_name = "N", default_value_t = 2048)]
    generate: usize,
    /// Seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Write a page with the checks and their figures too
    #[arg(long, value_name = "PAGE.html")]
    page: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.record.check(args.page.as_deref())?;
    let asked = Diagnosing {
        model: model_path(&args.model.model),
        data: [args.data.clone(), args.end.clone()],
        weights: args.weights.both(),
        points: args.points,
        generate: args.generate,
        seed: args.seed,
    };
    let watch = Terminal::new(args.record.quiet);
    if let Some((model, energy)) = args.model.open_states()? {
        let found = asked.run_states((&model.content, &energy), &watch)?;
        return told(&args, &asked, &found);
    }
    let (model, energy) = args.model.open()?;
    let found = asked.run(&model.content, &energy, &watch)?;
    told(&args, &asked, &found)
}

/// Prints the verdict, writes page and record, and ends as the verdict says.
fn told<D: Shown + Serialize>(args: &Args, asked: &Diagnosing, found: &Diagnosed<D>) -> Result<()> {
    print(&verdict::text(&asked.model.display().to_string(), found))?;
    if let Some(path) = &args.page {
        let html = verdict::page(&args.model.name(), found).html();
        outputs::write(path, args.record.force, |writer| {
            Ok(writer.write_all(html.as_bytes())?)
        })?;
    }
    args.record.write(|| {
        serde_json::json!({
            "model": args.model.name(),
            "judged_by": found.origin,
            "only_trained_rows": found.only_trained,
            "settings": found.settings,
            "generated": args.generate,
            "diagnosis": found.diagnosis,
        })
    })?;
    found.verdict()
}
