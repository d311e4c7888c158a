//! `diffclf diagnose`: is the model any good? A verdict without ground truth, in plain words with the figures behind it.

use crate::opened::{ModelArgs, RecordArgs};
use crate::print::print;
use crate::terminal::Terminal;
use diffclf::metric::diagnose::{Check, Diagnosis, Verdict};
use diffclf_report::text::table_text;
use diffclf_report::verdict::{basins, count, verdict_text};
use diffclf_run::files::model_path;
use diffclf_run::judging::{Judging, diagnosis_settings};
use diffclf_run::{Error, Result, Watch};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf diagnose runs/mine samples.npy
  diffclf diagnose model.safetensors new-samples.npy --json verdict.json
  diffclf diagnose runs/mog40                   a built-in system needs no file: rows are drawn afresh

Give rows that were not trained on if you have them. If you give the very file of the training, the rows held out
there are found and used. Each check ends in pass, warn or fail, with what it means and what to do.

Exit codes: 0 all checks passed, 4 passed with warnings, 1 a check failed, 2 wrong usage or input.";

/// Width of the text.
const WIDTH: usize = 100;

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
    /// Points of the larger checks: more find smaller flaws
    #[arg(long, value_name = "N", default_value_t = 4096)]
    points: usize,
    /// Samples to generate and compare with the data, 0 for none
    #[arg(long, value_name = "N", default_value_t = 2048)]
    generate: usize,
    /// Seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    record: RecordArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.record.check([])?;
    let path = model_path(&args.model.model);
    let (model, energy) = args.model.open()?;
    let content = &model.content;
    let mut judging = Judging::gather(content, [args.data.as_deref(), args.end.as_deref()], &path)?;
    let settings = diagnosis_settings(args.points, args.seed);
    let parts = Diagnosis::PARTS as u64 + 1;
    let mut progress = Terminal::new(args.record.quiet).begin("diagnose", parts, 0);
    judging.generate(content, &energy, args.generate, args.seed, &mut |_| {
        progress.set(0, &|| "samples".into());
    })?;
    let diagnosis = judging.diagnosis(content, &energy, settings, &mut |done| {
        progress.set(1 + done as u64, &|| "checks".into());
    })?;
    progress.finish("done");

    let mut text = format!("{} judged by {}\n\n", path.display(), judging.origin);
    if judging.only_trained {
        text += &wrapped(
            "note: there are no other rows than those it was trained on, and they are kind to every model; hold some out when \
             training (--held-out), or give a file of others.",
            "",
        );
        text += "\n";
    }
    for check in &diagnosis.checks {
        text += &check_text(check);
    }
    if diagnosis.modes.basins.len() > 1 {
        text += &format!("{}\n", table_text(&basins(&diagnosis.modes)));
    }
    text += &format!("verdict: {}\n", verdict_text(&diagnosis));
    print(&text)?;
    args.record.write(|| {
        serde_json::json!({
            "model": args.model.name(),
            "judged_by": judging.origin,
            "only_trained_rows": judging.only_trained,
            "settings": settings,
            "generated": args.generate,
            "diagnosis": diagnosis,
        })
    })?;
    match diagnosis.verdict {
        Verdict::Fail => Err(Error::Failed(format!(
            "the model failed {} of {} checks",
            count(&diagnosis, Verdict::Fail),
            diagnosis.checks.len()
        ))),
        Verdict::Warn => Err(Error::Warned(format!(
            "{} of {} checks gave a warning",
            count(&diagnosis, Verdict::Warn),
            diagnosis.checks.len()
        ))),
        _ => Ok(()),
    }
}

fn check_text(check: &Check) -> String {
    let mark = check.verdict.name().to_uppercase();
    let indent = "          ";
    format!(
        "  {mark:<8}{}\n{}{}{}\n",
        check.name,
        wrapped(&check.finding, indent),
        wrapped(&format!("=> {}", check.meaning), indent),
        wrapped(&format!("({})", check.limits), indent),
    )
}

/// Text in lines of limited width.
fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let length = indent.len() + line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && length > WIDTH {
            lines += &format!("{indent}{line}\n");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines + &format!("{indent}{line}\n")
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn long_text_is_broken_between_words() {
        let text = "word ".repeat(60);
        let lines = wrapped(&text, "    ");
        assert!(lines.lines().count() > 2);
        assert!(
            lines
                .lines()
                .all(|line| line.len() <= 100 && line.starts_with("    word"))
        );
        assert_eq!(wrapped("", "  "), "  \n");
    }
}
