//! Observables of frames: tables, and free energy surfaces beside the reference's.

use crate::axis::Axis;
use crate::heatmap::Heatmap;
use crate::page::Table;
use crate::square::{HEIGHT, WIDTH};
use crate::{escape, push, standalone};
use diffclf::metric::Surface;
use diffclf_run::observe::{Observation, Observed};

/// Free energies above this are one colour, in kT.
pub const HIGHEST: f64 = 10.0;

fn sets(found: &Observation) -> impl Iterator<Item = &Observed> {
    std::iter::once(&found.found).chain(&found.reference)
}

/// All tables: observables, states and transitions, distances.
pub fn tables(found: &Observation) -> Vec<Table> {
    let header = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let mut tables = Vec::new();
    for set in sets(found) {
        let rows = set.series.iter().map(|one| {
            vec![
                one.name.clone(),
                format!("{:.4}", one.mean),
                format!("{:.4}", one.range.0),
                format!("{:.4}", one.range.1),
                format!("{:.1}", one.correlation_time),
                format!("{:.3}", one.r_hat),
            ]
        });
        tables.push(Table {
            caption: format!(
                "{}: {} chains of {} frames",
                set.name, set.chains, set.frames
            ),
            header: header(&[
                "observable",
                "mean",
                "smallest",
                "largest",
                "autocorrelation time (frames)",
                "R-hat",
            ]),
            rows: rows.collect(),
        });
        for states in &set.states {
            let count = states.found.weights.len();
            let border = |k: usize| states.borders.get(k).map_or(String::new(), f64::to_string);
            let rows = (0..count).map(|k| {
                let name = match k {
                    0 => format!("{} < {}", states.name, border(0)),
                    k if k < states.borders.len() => {
                        format!("{} <= {} < {}", border(k - 1), states.name, border(k))
                    }
                    k => format!("{} >= {}", states.name, border(k - 1)),
                };
                let row = &states.found.transitions[k * count..][..count];
                let leaves: Vec<String> = row.iter().map(u64::to_string).collect();
                vec![
                    name,
                    format!(
                        "{:.4} ± {:.4}",
                        states.found.weights[k], states.found.errors[k]
                    ),
                    format!("{:.1}", states.found.correlation_times[k]),
                    leaves.join(" "),
                ]
            });
            tables.push(Table {
                caption: format!("{}: states of {}", set.name, states.name),
                header: header(&[
                    "state",
                    "weight",
                    "autocorrelation time (frames)",
                    "transitions to each",
                ]),
                rows: rows.collect(),
            });
        }
    }
    if let Some(distances) = &found.distances {
        tables.push(Table {
            caption: format!(
                "{} against {}, {} by {} cells; the floor is that of two halves of the reference",
                found.found.name,
                found.reference.as_ref().map_or("", |set| set.name.as_str()),
                distances.bins,
                distances.bins
            ),
            header: header(&["distance", "value", "floor"]),
            rows: vec![
                vec![
                    "Jensen-Shannon divergence".into(),
                    format!("{:.5}", distances.js),
                    format!("{:.5}", distances.js_floor),
                ],
                vec![
                    "PMF error (kT^2)".into(),
                    format!("{:.4}", distances.pmf),
                    format!("{:.4}", distances.pmf_floor),
                ],
            ],
        });
    }
    tables
}

/// A free energy surface; what no frame has seen stays empty.
pub fn surface_svg(surface: &Surface, alt: &str, labels: [&str; 2]) -> String {
    let [x0, x1, y0, y1] = surface.limits;
    // A picture has rows of y, the surface columns of x.
    let values: Vec<f64> = (0..surface.bins * surface.bins)
        .map(|k| surface.values[k % surface.bins * surface.bins + k / surface.bins].min(HIGHEST))
        .map(|value| if value < HIGHEST { value } else { f64::NAN })
        .collect();
    Heatmap {
        alt,
        x: Axis::linear(labels[0], x0, x1),
        y: Axis::linear(labels[1], y0, y1),
        columns: surface.bins,
        values: &values,
        colour: Axis::linear("free energy (kT)", 0.0, HIGHEST),
        contours: &[1.0, 2.0, 4.0, 6.0, 8.0],
    }
    .svg()
}

/// The surfaces of the first two observables side by side, as a file of its own; none where there is one observable alone.
pub fn surfaces(found: &Observation) -> Option<String> {
    let drawn: Vec<(String, String)> = sets(found)
        .filter_map(|set| {
            let [x, y, ..] = set.series.as_slice() else {
                return None;
            };
            let alt = format!("Free energy of {} and {} in {}", x.name, y.name, set.name);
            let svg = surface_svg(set.surface.as_ref()?, &alt, [&x.name, &y.name]);
            Some((set.name.clone(), svg))
        })
        .collect();
    let (count, title) = (drawn.len(), 22.0);
    if count == 0 {
        return None;
    }
    let (width, height) = (WIDTH * count as f64, HEIGHT + title);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\">"
    );
    for (k, (name, picture)) in drawn.iter().enumerate() {
        let left = WIDTH * k as f64;
        push(
            &mut svg,
            format_args!(
                "<text x=\"{}\" y=\"16\">{}</text><svg x=\"{left}\" y=\"{title}\" width=\"{WIDTH}\" height=\"{HEIGHT}\">{picture}</svg>",
                left + 62.0,
                escape(name)
            ),
        );
    }
    svg.push_str("</svg>");
    Some(standalone(&svg))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diffclf::observable::Observable;
    use diffclf_run::observe::{Frames, Observing};

    #[test]
    fn tables_and_pictures_of_frames() {
        let rows = |a: f64| -> Vec<f64> {
            (0..300)
                .flat_map(|k| [(f64::from(k) * a).sin(), (f64::from(k) * 0.3).cos()])
                .collect()
        };
        let frames = |name: &str, a: f64| Frames::of(name.into(), rows(a), 2, 3).unwrap();
        let asked = Observing {
            observables: vec![
                ("x".into(), Observable::Column(0)),
                ("y".into(), Observable::Column(1)),
            ],
            states: vec![("x".into(), vec![-0.5, 0.5])],
            bins: 10,
            ..Observing::default()
        };
        let found = asked
            .run(&frames("chains <1>", 0.7), Some(&frames("data", 0.9)))
            .unwrap();
        let tables = tables(&found);
        assert_eq!(tables.len(), 5);
        let text: String = tables.iter().map(crate::text::table_text).collect();
        for word in [
            "x < -0.5",
            "-0.5 <= x < 0.5",
            "x >= 0.5",
            "Jensen-Shannon",
            "floor",
            "R-hat",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
        let svg = surfaces(&found).unwrap();
        crate::well_formed::assert_well_formed(&svg);
        assert!(svg.contains("chains &lt;1&gt;") && svg.contains("free energy (kT)"));
    }
}
