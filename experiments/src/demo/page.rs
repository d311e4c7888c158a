//! The demonstration as a table and as a page with pictures.

use super::{BATCH, Demo, LEVELS, SMALLEST_TIME};
use diffclf::energy::Energy;
use diffclf::metric::Evaluation;
use diffclf::model::Content;
use diffclf_report::axis::Axis;
use diffclf_report::curve::{Curve, Series};
use diffclf_report::heatmap::Heatmap;
use diffclf_report::page::{Figure, Page, Table};

/// Cells of a picture's side.
const CELLS: usize = 160;

/// Free energies above this are not shown, in kT.
const HIGHEST: f64 = 8.0;

/// The picture's frame in the user's coordinates: both modes with five standard deviations around them.
const FRAME: [(f64, f64); 2] = [(-2.0, 2.4), (-2.3, 2.1)];

/// The density on the cells of the frame, scaled so that it sums to one there: learned densities are compared by shape.
fn density(content: &Content, energy: &dyn Energy) -> Vec<f64> {
    let at =
        |(low, high): (f64, f64), k: usize| low + (high - low) * (k as f64 + 0.5) / CELLS as f64;
    let points: Vec<f64> = (0..CELLS * CELLS)
        .flat_map(|k| [at(FRAME[0], k % CELLS), at(FRAME[1], k / CELLS)])
        .collect();
    let mut values = vec![0.0; CELLS * CELLS];
    content
        .in_data_coordinates(energy)
        .log_density(&[SMALLEST_TIME], &points, &mut values);
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let cell: f64 = FRAME
        .iter()
        .map(|(low, high)| (high - low) / CELLS as f64)
        .product();
    let mass: f64 = values.iter().map(|v| (v - largest).exp() * cell).sum();
    values.iter().map(|v| (v - largest).exp() / mass).collect()
}

impl Demo {
    /// The figures of merit of both models.
    pub fn table(&self) -> Table {
        let Demo {
            exact,
            models: outcomes,
            steps,
            ..
        } = self;
        let row = |name: &str, best: String, of: &dyn Fn(&Evaluation) -> String| {
            let mut row = vec![name.to_string(), best];
            row.extend(outcomes.iter().map(|outcome| of(&outcome.evaluation)));
            row
        };
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let optimum = outcomes[0].evaluation.average.optimum.mean;
        let weights = exact.start().weights();
        let evaluations = (steps[0] + steps[1]) * (BATCH * LEVELS) as u64;
        let mut rows: Vec<_> = (0..2)
            .map(|k| {
                row(
                    &format!("weight of mode {}", k + 1),
                    format!("{:.3}", weights[k]),
                    &|e| format!("{:.3}", e.mode_weights.model[k]),
                )
            })
            .collect();
        rows.extend([
            row("R² of log-density, smallest time", "1".into(), &|e| {
                format!("{:.4}", e.levels[0].r2)
            }),
            row("R² of log-density, all levels", "1".into(), &|e| {
                format!("{:.4}", e.average.r2)
            }),
            row("ESS, smallest time", percent(1.0), &|e| {
                percent(e.levels[0].ess)
            }),
            row("ESS, all levels", percent(1.0), &|e| percent(e.average.ess)),
            row("classification loss", format!("{optimum:.3}"), &|e| {
                format!("{:.3}", e.average.classification.mean)
            }),
            row("  above its optimum", "0".into(), &|e| {
                format!("{:.4}", e.average.excess)
            }),
            row("score evaluations", String::new(), &|_| {
                evaluations.to_string()
            }),
        ]);
        let mut time = vec!["training time".to_string(), String::new()];
        time.extend(
            outcomes
                .iter()
                .map(|outcome| format!("{:.1} s", outcome.seconds)),
        );
        rows.push(time);
        let mut header = vec!["two modes".to_string(), "truth / best".into()];
        header.extend(outcomes.iter().map(|outcome| outcome.name.to_string()));
        Table {
            caption: "The same mixture, learned twice with the same number of score evaluations"
                .into(),
            header,
            rows,
        }
    }

    /// The page, in HTML.
    pub fn html(&self) -> String {
        let Demo {
            content,
            exact,
            models: outcomes,
            steps,
        } = self;
        let table = &self.table();
        let truth = density(content, exact);
        let top = truth.iter().copied().fold(0.0, f64::max);
        let picture = |values: &[f64], name: &str| {
            let alt = format!("free energy of two modes: {name}");
            // Above the truth's lowest point, so that the pictures can be compared.
            let values: Vec<f64> = values
                .iter()
                .map(|density| (top / density).ln().max(0.0))
                .map(|value| if value < HIGHEST { value } else { f64::NAN })
                .collect();
            let svg = Heatmap {
                alt: &alt,
                x: Axis::linear("x1", FRAME[0].0, FRAME[0].1),
                y: Axis::linear("x2", FRAME[1].0, FRAME[1].1),
                columns: CELLS,
                values: &values,
                colour: Axis::linear("−log p (kT)", 0.0, HIGHEST),
                contours: &[1.0, 2.0, 4.0, 6.0, 8.0],
            }
            .svg();
            Figure {
                svg,
                caption: name.into(),
            }
        };
        let weight = exact.start().weights()[0];
        let mut pictures = vec![picture(
            &truth,
            &format!("Truth: mode weights {:.2} and {:.2}", weight, 1.0 - weight),
        )];
        for outcome in outcomes {
            let found = outcome.evaluation.mode_weights.model[0].mean;
            let caption = format!(
                "{}: mode weights {found:.2} and {:.2}",
                outcome.name,
                1.0 - found
            );
            pictures.push(picture(&density(content, &outcome.energy), &caption));
        }
        let ends =
            |points: &[(f64, f64)]| [points.first(), points.last()].map(|p| p.map_or(0.0, |p| p.0));
        let truth_line = ends(&outcomes[0].weights.points).map(|step| (step, weight));
        let series = [
            outcomes[0].weights.clone(),
            outcomes[1].weights.clone(),
            Series {
                name: "truth".into(),
                points: truth_line.to_vec(),
            },
        ];
        let curve = Curve {
            alt: "weight of the first mode during training",
            x_label: "step",
            y_label: "weight of mode 1",
            x_logarithmic: false,
            y_logarithmic: false,
            series: &series,
        };
        let mut page = Page::new("Two modes, and how much weight each has");
        page.paragraph(
            "Score matching learns in which direction density grows. Between two distant modes there is nothing to learn from, \
             so the score says almost nothing about how probability is shared between them: a learned energy comes out with \
             some weights, not with the right ones. DiffCLF also asks, for every noisy sample, which noise level it came from. \
             To answer, the densities of all levels must fit together, and at the noisiest level the modes have merged: from \
             there the right weights reach the data.",
        )
        .table(table)
        .heading("The learned densities")
        .paragraph(&format!(
            "At the smallest time, {SMALLEST_TIME}, in the data's own coordinates; one colour scale for all three, and each \
             density sums to one over its picture."
        ))
        .figures(&pictures)
        .heading("During training")
        .paragraph(&format!(
            "Both models share their first {} steps of score matching; the next {} use the same rows, times and noise.",
            steps[0], steps[1]
        ))
        .figures(&[Figure {
            svg: curve.svg(),
            caption: "Weight of the first mode, estimated on exact samples.".into(),
        }])
        .heading("Again")
        .verbatim("diffclf demo");
        page.html()
    }
}
