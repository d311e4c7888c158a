//! Distances between two samples, as a table.

use crate::page::Table;
use diffclf::metric::Distance;
use diffclf_run::compare::{Compared, Distances};

/// Each distance with its floor; `sample` is the name of what was compared.
pub fn table(sample: &str, found: &Compared) -> Table {
    let of = |name: &str, distance: Distance| {
        vec![
            name.to_string(),
            format!("{:.5}", distance.value),
            format!("{:.5}", distance.floor),
            format!("{:.3}", distance.p_value),
        ]
    };
    let mut rows = Vec::new();
    match &found.distances {
        Distances::Points(distances) => {
            rows.extend([
                of("MMD²", distances.mmd_squared),
                of("sliced W2", distances.sliced_wasserstein),
                of("sliced KS", distances.sliced_kolmogorov_smirnov),
                of("energy distance", distances.energy_distance),
            ]);
            rows.extend(distances.mode_weights.map(|(value, floor)| {
                let texts = [
                    "mode weights".into(),
                    format!("{value:.5}"),
                    format!("{floor:.5}"),
                    String::new(),
                ];
                texts.to_vec()
            }));
        }
        Distances::States(distances) => rows.extend([
            of("laws of sites", distances.sites),
            of("laws of pairs", distances.pairs),
            of("majorities", distances.majorities),
            of("MMD²", distances.mmd_squared),
            of("energy distance", distances.energy_distance),
        ]),
    }
    let kind = match &found.distances {
        Distances::Points(_) => "rows",
        Distances::States(_) => "rows of states",
    };
    let [own, reference, other] = found.rows;
    Table {
        caption: format!(
            "{sample} ({own} {kind}) against {} ({reference} rows, {other} more for the floor)",
            found.reference
        ),
        header: ["distance", "value", "floor", "p-value"]
            .map(String::from)
            .to_vec(),
        rows,
    }
}
