//! `diffclf rows`: the most typical and the most unusual rows of a file.

use crate::opened::{ModelArgs, RecordArgs};
use crate::print::print;
use crate::terminal::Terminal;
use diffclf_report::page::Table;
use diffclf_report::text::table_text;
use diffclf_run::density::{Quantity, evaluate_points};
use diffclf_run::error::{Error, Result};
use diffclf_run::files::MappedNpy;
use diffclf_run::questions::{extremes, names};
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf rows runs/mine data.npy
  diffclf rows runs/mine new.npy --number 20 --json unusual.json

Rows by their log-density, in nats, at the model's smallest time: where the density is highest, and
where it is lowest.";

/// Columns that are shown of each row.
const SHOWN: usize = 8;

/// The most typical and the most unusual rows.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Rows
    #[arg(value_name = "DATA.npy")]
    data: PathBuf,
    /// How many of either
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    number: usize,
    #[command(flatten)]
    record: RecordArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.record.check([])?;
    if args.number == 0 {
        return Err(Error::setting("number", 0, "at least 1 row"));
    }
    let (model, energy) = args.model.open()?;
    let content = &model.content;
    let watch = Terminal::new(args.record.quiet);
    let about = (content, &energy);
    let done = evaluate_points(Quantity::LogDensity, about, &args.data, None, &watch)?;
    let found = done.finish("rows");
    let sets = extremes(&found.values, args.number);
    let mapped = MappedNpy::open(&args.data)?;
    let view = mapped.view()?;
    let shown = view.dim().min(SHOWN);
    let name = |j: usize| names(content).get(j).cloned().unwrap_or(format!("x{j}"));
    let mut header = vec!["row".to_string(), "log-density".into()];
    header.extend((0..shown).map(name));
    for (title, rows) in ["Most typical", "Most unusual"].iter().zip(&sets) {
        let line = |(row, value): &(usize, f64)| {
            let mut numbers = vec![0.0; view.dim()];
            view.copy_row_f64(*row, &mut numbers);
            let mut line = vec![row.to_string(), format!("{value:.3}")];
            line.extend(numbers[..shown].iter().map(|x| format!("{x:.5}")));
            line
        };
        print(&table_text(&Table {
            caption: format!("{title} rows of {} (counted from 0)", args.data.display()),
            header: header.clone(),
            rows: rows.iter().map(line).collect(),
        }))?;
    }
    args.record.write(|| {
        let of = |rows: &[(usize, f64)]| {
            let of = |(row, value): &(usize, f64)| json!({"row": row, "log_density": value});
            rows.iter().map(of).collect::<Vec<_>>()
        };
        json!({
            "command": "rows",
            "model": args.model.name(),
            "data": args.data,
            "typical": of(&sets[0]),
            "unusual": of(&sets[1]),
        })
    })
}
