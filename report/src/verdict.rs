//! A diagnosis in words and tables.

use crate::page::{Notice, Page, Table};
use crate::text::table_text;
use diffclf::discrete::diagnose::{Shares, StatesDiagnosis};
use diffclf::metric::Estimate;
use diffclf::metric::diagnose::{
    Check, Diagnosis, Integral, ModeAudit, Normalisation, Rival, Tails, Verdict, Verdicts,
};
use diffclf_run::diagnose::Diagnosed;

/// Basins shown.
const FEW_BASINS: usize = 12;

/// Width of the text.
const WIDTH: usize = 100;

/// The whole diagnosis of a model of this name, for a terminal.
pub fn text<D: Shown>(model: &str, found: &Diagnosed<D>) -> String {
    let mut text = format!(
        "{model} judged by {}, worth {:.0} independent ones\n\n",
        found.origin,
        found.diagnosis.effective_rows()
    );
    if found.only_trained {
        text += &wrapped(
            "note: there are no other rows than those it was trained on, and they are kind to every model; hold some out when \
             training, or give a file of others.",
            "",
        );
        text += "\n";
    }
    let diagnosis = &found.diagnosis;
    for check in diagnosis.checks() {
        text += &check_text(check);
    }
    for table in diagnosis.tables() {
        text += &format!("{}\n", table_text(&table));
    }
    text + &format!("verdict: {}\n", verdict_text(diagnosis))
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

/// Checks with this verdict.
fn count(diagnosis: &dyn Verdicts, verdict: Verdict) -> usize {
    let same = diagnosis
        .checks()
        .iter()
        .filter(|check| check.verdict == verdict);
    same.count()
}

/// `warn (5 pass, 1 warn)`.
pub fn verdict_text(diagnosis: &dyn Verdicts) -> String {
    let kinds = [
        Verdict::Pass,
        Verdict::Warn,
        Verdict::Fail,
        Verdict::Skipped,
    ];
    let counts: Vec<String> = kinds
        .iter()
        .map(|kind| (count(diagnosis, *kind), kind.name()))
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    format!("{} ({})", diagnosis.verdict().name(), counts.join(", "))
}

/// The verdict in few lines: how many checks passed, and what each of the others found and means.
pub fn summary(diagnosis: &dyn Verdicts) -> String {
    let mut text = format!("verdict: {}", verdict_text(diagnosis));
    let bad = |check: &&Check| matches!(check.verdict, Verdict::Warn | Verdict::Fail);
    for check in diagnosis.checks().iter().filter(bad) {
        let found = format!("{}: {}", check.name, check.finding);
        let lines = wrapped(&found, "    ") + &wrapped(&format!("=> {}", check.meaning), "    ");
        text += &format!("\n  {}\n{}", check.verdict.name(), lines.trim_end());
    }
    text
}

/// The checks with their words and figures, on a page.
pub fn checks<D: Shown>(diagnosis: &D, page: &mut Page) {
    let notices: Vec<Notice> = diagnosis
        .checks()
        .iter()
        .map(|check| Notice {
            mark: check.verdict.name().into(),
            title: check.name.clone(),
            texts: vec![
                sentence(&check.finding),
                sentence(&check.meaning),
                format!("Limits: {}.", check.limits),
            ],
        })
        .collect();
    page.notices(&notices);
    for table in diagnosis.tables() {
        page.table(&table);
    }
}

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map_or(String::new(), |c| c.to_uppercase().to_string());
    let text = format!("{first}{}", letters.as_str());
    if text.ends_with('.') {
        text
    } else {
        text + "."
    }
}

/// A page with the diagnosis of a model of this name.
pub fn page<D: Shown>(model: &str, found: &Diagnosed<D>) -> Page {
    let mut page = Page::new(&format!("Is {model} any good?"));
    let diagnosis = &found.diagnosis;
    page.lead(&format!(
        "Judged without knowing the truth, by {}, worth {:.0} independent ones.",
        found.origin,
        diagnosis.effective_rows()
    ));
    let mark = diagnosis.verdict().name();
    page.cards(&[
        ("verdict", verdict_text(diagnosis), Some(mark)),
        (
            "held-out log-likelihood",
            format!("{:.2} nats per row", diagnosis.nats().mean),
            None,
        ),
        (
            "classification loss",
            format!("{:.3} nats", diagnosis.calibration().loss.mean),
            None,
        ),
    ]);
    if found.only_trained {
        page.paragraph(
            "There are no other rows than those it was trained on, and they are kind to every model: hold some out, or give others.",
        );
    }
    checks(diagnosis, &mut page);
    page.footer(&format!(
        "Written by diffclf {}.",
        env!("CARGO_PKG_VERSION")
    ));
    page
}

/// A diagnosis that can be shown.
pub trait Shown: Verdicts {
    /// The figures behind the checks, as far as there are any.
    fn tables(&self) -> Vec<Table>;
}

impl Shown for Diagnosis {
    fn tables(&self) -> Vec<Table> {
        let held_out = &self.held_out;
        let mut rivals = Vec::new();
        rivals.extend(held_out.mixture.map(|rival| ("fitted mixture", rival)));
        rivals.extend(held_out.kernels.map(|rival| ("kernel density", rival)));
        let caption = format!(
            "Log-likelihood of {} rows, nats per row in the data's coordinates",
            held_out.rows
        );
        let mut tables = vec![likelihoods(caption, held_out.nats, &rivals)];
        if !self.normalisation.levels.is_empty() {
            tables.push(integrals(&self.normalisation));
        }
        if !self.tails.shells.is_empty() {
            tables.push(shells(&self.tails));
        }
        if self.modes.basins.len() > 1 {
            tables.push(basins(&self.modes));
        }
        tables
    }
}

impl Shown for StatesDiagnosis {
    fn tables(&self) -> Vec<Table> {
        let held_out = &self.held_out;
        let mut rivals = vec![("independent sites", held_out.sites)];
        rivals.extend(held_out.tree.map(|rival| ("tree of pairs", rival)));
        let caption = format!("Log-likelihood of {} rows, nats per row", held_out.rows[0]);
        vec![
            likelihoods(caption, held_out.nats, &rivals),
            majorities(&self.shares),
        ]
    }
}

/// States that most sites show, side by side in data, density and generated rows.
fn majorities(shares: &Shares) -> Table {
    let text = |of: &Option<Vec<f64>>, k: usize| {
        of.as_ref()
            .map_or("-".into(), |shares| format!("{:.2} %", 100.0 * shares[k]))
    };
    let [data, density, generated] = &shares.majorities;
    Table {
        caption: "The state that most sites of a row show, and how often".into(),
        header: header(["state", "data", "density", "generated"]),
        rows: (0..shares.symbols.min(FEW_BASINS))
            .map(|k| {
                let parts = [data, density, generated].map(|of| text(of, k));
                [k.to_string()].into_iter().chain(parts).collect()
            })
            .collect(),
    }
}

fn header<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(String::from).to_vec()
}

/// The model beside classical densities.
fn likelihoods(caption: String, nats: Estimate, rivals: &[(&str, Rival)]) -> Table {
    let row = |name: &str, nats: Estimate, lead: Option<Estimate>| {
        let lead = lead.map_or("-".into(), |lead| {
            format!("{:+.3} ± {:.3}", lead.mean, lead.error)
        });
        vec![name.into(), format!("{nats:.3}"), lead]
    };
    let own = [row("the model", nats, None)];
    let others = rivals
        .iter()
        .map(|(name, rival)| row(name, rival.nats, Some(rival.lead)));
    Table {
        caption,
        header: header(["density", "nats", "the model's lead"]),
        rows: own.into_iter().chain(others).collect(),
    }
}

/// Integrals of the density, level by level.
fn integrals(normalisation: &Normalisation) -> Table {
    let text = |integral: &Integral| normalisation.text(integral);
    Table {
        caption: "Integral of exp(log p), by draws as wide as the data and wider".into(),
        header: header([
            "time",
            "all draws",
            "x 1",
            "x 1.5",
            "x 2",
            "x 3",
            "effective draws",
        ]),
        rows: normalisation
            .levels
            .iter()
            .map(|level| {
                let parts = [&level.integral].into_iter().chain(&level.by_width);
                let effective = format!("{:.0}", level.integral.effective);
                [format!("{:.4}", level.time)]
                    .into_iter()
                    .chain(parts.map(text))
                    .chain([effective])
                    .collect()
            })
            .collect(),
    }
}

/// The density away from the data.
fn shells(tails: &Tails) -> Table {
    let [lowest, _, median, largest] = tails.data;
    Table {
        caption: format!(
            "Log-density away from the data; that of the data is between {lowest:.1} and {largest:.1}, typically {median:.1}"
        ),
        header: header([
            "where",
            "points",
            "largest",
            "median",
            "median of the mixture",
        ]),
        rows: tails
            .shells
            .iter()
            .map(|shell| {
                let place = shell.inflation.map_or("box far outside".into(), |width| {
                    format!("{width} x as wide")
                });
                let figures = [shell.largest, shell.median, shell.mixture];
                [place, shell.points.to_string()]
                    .into_iter()
                    .chain(figures.map(|x| {
                        if x.abs() < 1e6 {
                            format!("{x:.1}")
                        } else {
                            format!("{x:.1e}")
                        }
                    }))
                    .collect()
            })
            .collect(),
    }
}

/// The basins, side by side in data, density and samples.
pub fn basins(modes: &ModeAudit) -> Table {
    let percent = |share: Option<Estimate>| {
        share.map_or("-".into(), |s| {
            format!("{:.1} ± {:.1} %", 100.0 * s.mean, 100.0 * s.error)
        })
    };
    let rows = modes.basins.iter().take(FEW_BASINS).enumerate();
    let hidden = modes.basins.len().saturating_sub(FEW_BASINS);
    let more = if hidden > 0 {
        format!("; {hidden} smaller ones are not shown")
    } else {
        String::new()
    };
    Table {
        caption: format!("Basins, and the probability each holds{more}"),
        header: ["basin", "data", "density", "generated"]
            .map(String::from)
            .to_vec(),
        rows: rows
            .map(|(k, basin)| {
                vec![
                    (k + 1).to_string(),
                    percent(Some(basin.data)),
                    percent(basin.density),
                    percent(basin.generated),
                ]
            })
            .collect(),
    }
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
