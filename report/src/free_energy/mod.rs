//! Free-energy differences in tables with both signs, pictures, pages and records.

mod bar;
mod fep;
mod learn;
mod levels;
mod mbar;
mod ti;

use crate::curve::{Curve, Series};
use crate::matrix::Matrix;
use crate::page::{Figure, Page, Table};
use crate::text::table_text;
pub use bar::bar;
use diffclf::free_energy::{LOW_OVERLAP, Overlap, factor_for};
use diffclf::metric::Estimate;
pub use fep::fep;
pub use learn::learn;
pub use levels::levels;
pub use mbar::mbar;
use serde_json::Value;
pub use ti::ti;

/// What every number here means.
pub const SIGN: &str = "delta = log(Z_B/Z_A) in kT, Z being the integral of exp(-u); pymbar's Delta_f = f_B - f_A = -delta";

/// What is told of an estimate.
pub struct Sheet {
    /// What it is.
    pub title: &'static str,
    /// The numbers.
    pub tables: Vec<Table>,
    /// What to beware of.
    pub notices: Vec<String>,
    /// Pictures.
    pub figures: Vec<Figure>,
    /// Everything, for programs.
    pub record: Value,
}

impl Sheet {
    /// Tables and notices as text.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n({SIGN})\n", self.title);
        for table in &self.tables {
            text += &format!("\n{}", table_text(table));
        }
        for notice in &self.notices {
            text += &format!("\nnote: {notice}");
        }
        if !self.notices.is_empty() {
            text += "\n";
        }
        text
    }

    /// The record, with the sign convention and the notices.
    pub fn json(&self) -> Value {
        let mut record = self.record.clone();
        record["convention"] = SIGN.into();
        record["program"] = format!("diffclf {}", env!("CARGO_PKG_VERSION")).into();
        record["notes"] = self.notices.clone().into();
        record
    }

    /// A page with the tables and pictures.
    pub fn html(&self) -> String {
        let mut page = Page::new(self.title);
        page.paragraph(SIGN);
        for table in &self.tables {
            page.table(table);
        }
        for notice in &self.notices {
            page.paragraph(&format!("Note: {notice}"));
        }
        page.figures(&self.figures);
        page.html()
    }
}

/// A table of differences: one name and one estimate of delta per row.
fn differences(caption: &str, rows: &[(String, Estimate)]) -> Table {
    let texts = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect();
    Table {
        caption: caption.into(),
        header: texts(&["", "delta", "error", "Delta_f = -delta"]),
        rows: rows
            .iter()
            .map(|(name, e)| {
                vec![
                    name.clone(),
                    format!("{:.6}", e.mean),
                    format!("{:.6}", e.error),
                    format!("{:.6}", 0.0 - e.mean),
                ]
            })
            .collect(),
    }
}

/// A table of other quantities.
fn facts(caption: &str, rows: &[(&str, String)]) -> Table {
    Table {
        caption: caption.into(),
        header: vec![String::new(), "value".into()],
        rows: rows
            .iter()
            .map(|(name, value)| vec![name.to_string(), value.clone()])
            .collect(),
    }
}

/// Warnings about links that are too weak to trust, the weakest by name.
fn overlap_notices(overlap: &Overlap) -> Vec<String> {
    const NAMED: usize = 3;
    let weak = overlap.weak_links();
    let mut notices: Vec<String> = weak
        .iter()
        .take(NAMED)
        .map(|link| {
            format!(
                "states {} and {} share an overlap of {:.4}, below {LOW_OVERLAP}: add a state between them, or more samples",
                link.from, link.to, link.overlap
            )
        })
        .collect();
    if weak.len() > NAMED {
        notices.push(format!(
            "{} more links have an overlap below {LOW_OVERLAP}",
            weak.len() - NAMED
        ));
    }
    notices
}

/// How many more samples an error of `wanted` needs.
fn effort(error: f64, wanted: f64) -> String {
    let factor = factor_for(error, wanted);
    if factor <= 1.0 {
        format!("reached (error {error:.4} kT)")
    } else {
        format!("{factor:.1} times as many samples")
    }
}

/// The overlap matrix as a picture.
fn overlap_figure(overlap: &Overlap) -> Figure {
    let names: Vec<String> = overlap.states.iter().map(usize::to_string).collect();
    let map = Matrix {
        alt: "overlap matrix: the probability that a sample of one state could come from another",
        label: "state, as given",
        names: &names,
        values: &overlap.matrix,
    };
    Figure {
        svg: map.svg(),
        caption: format!(
            "Overlap matrix: the share of a row's samples that could have come from the state of a column, for the states with samples; each row sums to 1 (within {:.0e}). Scalar overlap {:.4}.",
            overlap.row_error.max(1e-16),
            overlap.scalar
        ),
    }
}

/// The integrand of thermodynamic integration, with a band of two errors.
fn integrand_figure(lambdas: &[f64], slopes: &[Estimate]) -> Figure {
    let line = |name: &str, factor: f64| Series {
        name: name.into(),
        points: lambdas
            .iter()
            .zip(slopes)
            .map(|(x, s)| (*x, s.mean + factor * s.error))
            .collect(),
    };
    let curve = Curve {
        alt: "mean slope of the energy along the path",
        x_label: "lambda or t",
        y_label: "<du/dlambda> (kT)",
        x_logarithmic: false,
        y_logarithmic: false,
        series: &[
            line("mean", 0.0),
            line("mean + 2 errors", 2.0),
            line("mean - 2 errors", -2.0),
        ],
    };
    Figure {
        svg: curve.svg(),
        caption: "The integrand: delta is minus the area under the curve.".into(),
    }
}

/// Estimates that should agree, against the share of the data they come from.
fn convergence_figure(found: &diffclf::free_energy::Convergence) -> Figure {
    let line = |name: &str, estimates: &[Estimate], factor: f64| Series {
        name: name.into(),
        points: found
            .shares
            .iter()
            .zip(estimates)
            .map(|(x, e)| (*x, e.mean + factor * e.error))
            .collect(),
    };
    let curve = Curve {
        alt: "estimates from growing shares of the data, from the front and from the back",
        x_label: "share of the data",
        y_label: "delta (kT)",
        x_logarithmic: false,
        y_logarithmic: false,
        series: &[
            line("from the front", &found.forward, 0.0),
            line("from the back", &found.backward, 0.0),
            line("front + error", &found.forward, 1.0),
            line("front - error", &found.forward, -1.0),
        ],
    };
    Figure {
        svg: curve.svg(),
        caption: "Forward and backward convergence: both must meet the same value well before the right end.".into(),
    }
}
