//! The outcome: figures averaged over seeds, beside what the paper prints, and whether the orders it claims hold.

use crate::Manner;
use crate::catalogue::{Definition, Expected, Order, Picture};
use crate::cell::{CellRecord, Figure};
use diffclf_report::page::{Page, Table};
use diffclf_report::standalone;
use diffclf_report::text::table_text;
use diffclf_run::error::{Error, Result};
use diffclf_run::files::write_atomic;
use diffclf_run::watch::duration_text;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Files of an outcome, beside its pictures.
pub const RESULTS: [&str; 3] = ["results.json", "table.md", "report.html"];

/// Figures of which more is better.
const MORE_IS_BETTER: [&str; 2] = ["ess", "r2"];

/// Everything that was found.
pub struct Outcome {
    /// Group to figures, averaged over seeds.
    groups: BTreeMap<String, Group>,
    /// Names of all figures, in order of their first appearance.
    names: Vec<String>,
    expected: Vec<Expected>,
    orders: Vec<(Order, Standing)>,
    seconds: f64,
}

/// How a claim that one figure is smaller than another stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Smaller by more than twice the errors of both together.
    Holds,
    /// Smaller, but an error is not known.
    ErrorUnknown,
    /// The errors allow either.
    Alike,
    /// Larger, by more than twice the errors that are known.
    Broken,
}

impl Standing {
    fn of(less: &Figure, than: &Figure) -> Self {
        let error = less.error.unwrap_or(0.0).hypot(than.error.unwrap_or(0.0));
        let known = less.error.is_some() && than.error.is_some();
        match than.value - less.value {
            gap if gap > 2.0 * error && known => Self::Holds,
            gap if gap > 2.0 * error => Self::ErrorUnknown,
            gap if gap >= -2.0 * error => Self::Alike,
            _ => Self::Broken,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::ErrorUnknown => "smaller, error unknown",
            Self::Alike => "alike within errors",
            Self::Broken => "DOES NOT HOLD",
        }
    }
}

/// Cells that differ only in the seed.
#[derive(Default)]
struct Group {
    figures: BTreeMap<String, Figure>,
    seeds: usize,
}

/// The group of a cell: its name without the seed.
fn group_of(cell: &str) -> &str {
    match cell.rsplit_once("-s") {
        Some((group, seed)) if seed.parse::<u64>().is_ok() => group,
        _ => cell,
    }
}

impl Outcome {
    /// Puts the finished cells together.
    pub fn new(
        definition: &Definition,
        expected: Vec<Expected>,
        records: &BTreeMap<String, CellRecord>,
        manner: Manner,
    ) -> Self {
        let mut values: BTreeMap<&str, Vec<&CellRecord>> = BTreeMap::new();
        for (cell, record) in records {
            values.entry(group_of(cell)).or_default().push(record);
        }
        let groups: BTreeMap<String, Group> = values
            .into_iter()
            .map(|(name, records)| (name.to_string(), Group::of(&records)))
            .collect();
        let mut names: Vec<String> = Vec::new();
        for name in groups.values().flat_map(|group| group.figures.keys()) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let orders = definition
            .orders(manner.quick)
            .filter_map(|order| {
                let of = |group: &str| groups.get(group)?.figures.get(&order.figure);
                let (less, than) = (of(&order.less)?, of(&order.than)?);
                Some((order.clone(), Standing::of(less, than)))
            })
            .collect();
        // Fewer steps, and another grid of the quick budget, give other figures than the paper's. Known answers stay.
        let reduced = manner.quick || manner.share < 1.0;
        let expected = expected
            .into_iter()
            .filter(|row| {
                let group = groups.get(&row.cell);
                (row.exact || !reduced)
                    && group.is_some_and(|group| group.figures.contains_key(&row.figure))
            })
            .collect();
        Self {
            groups,
            names,
            expected,
            orders,
            seconds: records.values().map(|record| record.seconds).sum(),
        }
    }

    fn figures(&self) -> Table {
        let rows = self.groups.iter().map(|(name, group)| {
            let mut row = vec![name.clone(), group.seeds.to_string()];
            row.extend(
                self.names
                    .iter()
                    .map(|figure| group.figures.get(figure).map_or(String::new(), text)),
            );
            row
        });
        let mut header = vec!["cell".to_string(), "seeds".into()];
        header.extend(self.names.iter().cloned());
        Table {
            caption: format!(
                "Figures (± spread over seeds, or sampling error of one seed); {} of computation",
                duration_text(Duration::from_secs_f64(self.seconds))
            ),
            header,
            rows: rows.collect(),
        }
    }

    fn beside_the_paper(&self) -> Table {
        let rows = self.expected.iter().map(|row| {
            let ours = self.groups[&row.cell].figures[&row.figure];
            vec![
                row.cell.clone(),
                row.figure.clone(),
                row.value.to_string(),
                text(&ours),
                comparison(row, &ours).into(),
                row.source.clone(),
            ]
        });
        Table {
            caption: "Beside the paper".into(),
            header: ["cell", "figure", "paper", "ours", "ours is", "source"]
                .map(String::from)
                .to_vec(),
            rows: rows.collect(),
        }
    }

    fn claims(&self) -> Table {
        let rows = self.orders.iter().map(|(order, standing)| {
            let of = |group: &str| self.groups[group].figures[&order.figure];
            let (less, than) = (of(&order.less), of(&order.than));
            vec![
                format!("{}: {} < {}", order.figure, order.less, order.than),
                text(&less),
                text(&than),
                standing.words().into(),
            ]
        });
        Table {
            caption: "Orders that the paper claims".into(),
            header: ["claim", "smaller", "larger", ""]
                .map(String::from)
                .to_vec(),
            rows: rows.collect(),
        }
    }

    fn tables(&self) -> Vec<Table> {
        [self.figures(), self.beside_the_paper(), self.claims()]
            .into_iter()
            .filter(|table| !table.rows.is_empty())
            .collect()
    }

    /// For the terminal.
    pub fn text(&self) -> String {
        let tables: Vec<String> = self.tables().iter().map(table_text).collect();
        tables.join("\n")
    }

    /// Writes results.json, table.md, report.html and the pictures.
    pub fn write(
        &self,
        folder: &Path,
        definition: &Definition,
        command: &str,
        pictures: &[Picture],
    ) -> Result<()> {
        let groups: BTreeMap<&String, _> = self
            .groups
            .iter()
            .map(|(name, group)| {
                (
                    name,
                    json!({"seeds": group.seeds, "figures": group.figures}),
                )
            })
            .collect();
        let document = json!({
            "title": definition.title,
            "paper": definition.paper,
            "command": command,
            "version": env!("CARGO_PKG_VERSION"),
            "seconds": self.seconds,
            "groups": groups,
            "orders": self.orders.iter().map(|(order, standing)| json!({
                "figure": order.figure, "less": order.less, "than": order.than, "verdict": standing.words(),
            })).collect::<Vec<_>>(),
        });
        let write = |name: &str, text: String| {
            write_atomic(&folder.join(name), |writer| {
                Ok(writer.write_all(text.as_bytes())?)
            })
        };
        write(RESULTS[0], format!("{document:#}\n"))?;
        let mut markdown = format!(
            "# {}\n\n{}. `{command}`\n",
            definition.title, definition.paper
        );
        let mut page = Page::new(&definition.title);
        page.paragraph(&format!("{}.", definition.paper))
            .verbatim(command);
        for table in self.tables() {
            markdown += &format!("\n{}", markdown_table(&table));
            page.table(&table);
        }
        write(RESULTS[1], markdown)?;
        for picture in pictures {
            write(
                &format!("{}.svg", picture.name),
                standalone(&picture.figure.svg),
            )?;
        }
        let figures: Vec<_> = pictures.iter().map(|p| p.figure.clone()).collect();
        page.figures(&figures);
        write(RESULTS[2], page.html())
    }

    /// Whether no claim is broken; figures that are alike within their errors speak neither for nor against one.
    pub fn verdict(&self) -> Result<()> {
        let broken: Vec<String> = self
            .orders
            .iter()
            .filter(|(_, standing)| *standing == Standing::Broken)
            .map(|(order, _)| format!("{}: {} < {}", order.figure, order.less, order.than))
            .collect();
        if broken.is_empty() {
            Ok(())
        } else {
            Err(Error::Failed(format!(
                "an order that the paper claims does not hold here: {}",
                broken.join("; ")
            )))
        }
    }
}

impl Group {
    fn of(records: &[&CellRecord]) -> Self {
        let mut figures = BTreeMap::new();
        for name in records.iter().flat_map(|record| record.figures.keys()) {
            let found: Vec<Figure> = records
                .iter()
                .filter_map(|record| record.figures.get(name).copied())
                .collect();
            let n = found.len() as f64;
            let mean = found.iter().map(|f| f.value).sum::<f64>() / n;
            let squares: f64 = found.iter().map(|f| (f.value - mean).powi(2)).sum();
            let error = match found[..] {
                [one] => one.error,
                _ => Some((squares / (n - 1.0)).sqrt()),
            };
            figures.insert(name.clone(), Figure { value: mean, error });
        }
        Self {
            figures,
            seeds: records.len(),
        }
    }
}

/// Better or worse by more than the paper's tolerance and twice our own error together, or neither; of a known answer, off.
fn comparison(paper: &Expected, ours: &Figure) -> &'static str {
    let tolerance = paper.tolerance.hypot(2.0 * ours.error.unwrap_or(0.0));
    let sign = if MORE_IS_BETTER.contains(&paper.figure.as_str()) {
        -1.0
    } else {
        1.0
    };
    match sign * (ours.value - paper.value) {
        off if paper.exact && off.abs() > tolerance => "off",
        _ if paper.exact => "alike",
        worse if worse > tolerance => "worse",
        worse if worse < -tolerance => "better",
        _ => "alike",
    }
}

/// Four digits, more where the error is small.
fn text(figure: &Figure) -> String {
    let Figure { value, error } = *figure;
    let scale = error.filter(|e| *e > 0.0).unwrap_or(value.abs() * 1e-3);
    let digits = (1.0 - scale.max(1e-300).log10()).ceil().clamp(0.0, 6.0) as usize;
    match error {
        Some(error) => format!("{value:.digits$} ± {error:.digits$}"),
        None => format!("{value:.digits$}"),
    }
}

/// A table in Markdown.
fn markdown_table(table: &Table) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|c| c.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule: Vec<String> = table.header.iter().map(|_| "---".into()).collect();
    let body: String = table.rows.iter().map(|row| line(row)).collect();
    format!(
        "{}\n\n{}{}{body}",
        table.caption,
        line(&table.header),
        line(&rule)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_averaged_and_differences_judged_by_their_spread() {
        assert_eq!(
            [
                group_of("d8-n4-dsm-s12"),
                group_of("d8-n4-dsm"),
                group_of("a-small")
            ],
            ["d8-n4-dsm", "d8-n4-dsm", "a-small"]
        );
        let record = |value: f64| CellRecord {
            figures: [(
                "ess".to_string(),
                Figure {
                    value,
                    error: Some(0.5),
                },
            )]
            .into(),
            series: BTreeMap::new(),
            seconds: 1.0,
            made: None,
        };
        let (a, b) = (record(1.0), record(2.0));
        let group = Group::of(&[&a, &b]);
        let found = group.figures["ess"];
        assert_eq!((found.value, group.seeds), (1.5, 2));
        assert!((found.error.unwrap() - 0.5f64.sqrt()).abs() < 1e-15);
        assert_eq!(Group::of(&[&a]).figures["ess"].error, Some(0.5));
        let judged = |figure: &str, tolerance, exact| {
            let paper = Expected {
                cell: "a".into(),
                figure: figure.into(),
                value: 0.9,
                tolerance,
                exact,
                source: String::new(),
            };
            comparison(
                &paper,
                &Figure {
                    value: 0.95,
                    error: Some(0.01),
                },
            )
        };
        assert_eq!(
            [
                judged("ess", 0.02, false),
                judged("fisher", 0.02, false),
                judged("fisher", 0.2, false),
                judged("share", 0.02, true),
                judged("share", 0.2, true)
            ],
            ["better", "worse", "alike", "off", "alike"]
        );
    }

    #[test]
    fn a_claim_holds_beyond_both_errors_only() {
        let figure = |value, error| Figure { value, error };
        let standing = |value, error| Standing::of(&figure(value, error), &figure(1.0, Some(0.04)));
        // Twice the joint error of 0.03 and 0.04 is 0.1.
        assert_eq!(standing(0.89, Some(0.03)), Standing::Holds);
        assert_eq!(standing(0.91, Some(0.03)), Standing::Alike);
        assert_eq!(standing(1.09, Some(0.03)), Standing::Alike);
        assert_eq!(standing(1.11, Some(0.03)), Standing::Broken);
        assert_eq!(standing(0.91, None), Standing::ErrorUnknown);
        assert_eq!(standing(f64::NAN, Some(0.03)), Standing::Broken);
    }

    #[test]
    fn figures_show_the_digits_they_have() {
        let figure = |value, error| text(&Figure { value, error });
        assert_eq!(figure(4.28461, Some(0.0055)), "4.2846 ± 0.0055");
        assert_eq!(figure(140.32, Some(12.0)), "140 ± 12");
        assert_eq!(figure(0.5, None), "0.50000");
    }
}
