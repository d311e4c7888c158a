//! Distances between two samples, as a table.

use crate::page::Table;
use diffclf::metric::Distance;
use diffclf_run::compare::Compared;

/// Each distance with its floor; `sample` is the name of what was compared.
pub fn table(sample: &str, found: &Compared) -> Table {
    let distances = &found.distances;
    let of = |name: &str, distance: Distance| {
        vec![
            name.to_string(),
            format!("{:.5}", distance.value),
            format!("{:.5}", distance.floor),
            format!("{:.3}", distance.p_value),
        ]
    };
    let mut rows = vec![
        of("MMD²", distances.mmd_squared),
        of("sliced W2", distances.sliced_wasserstein),
        of("sliced KS", distances.sliced_kolmogorov_smirnov),
        of("energy distance", distances.energy_distance),
    ];
    rows.extend(distances.mode_weights.map(|(value, floor)| {
        let texts = [
            "mode weights".into(),
            format!("{value:.5}"),
            format!("{floor:.5}"),
            String::new(),
        ];
        texts.to_vec()
    }));
    let [own, reference, other] = found.rows;
    Table {
        caption: format!(
            "{sample} ({own} rows) against {} ({reference} rows, {other} more for the floor)",
            found.reference
        ),
        header: ["distance", "value", "floor", "p-value"]
            .map(String::from)
            .to_vec(),
        rows,
    }
}
