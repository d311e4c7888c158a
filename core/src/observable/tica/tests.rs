//! TICA against exact time scales and numbers of an independent implementation.

use super::*;

/// The generator of `core/tests/deeptime/make_fixture.py`.
fn chain(seed: u64, frames: usize) -> Vec<f64> {
    let mut state = seed;
    let mut draw = || {
        let mut total = 0.0;
        for _ in 0..12 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            total += (state >> 11) as f64 / (1_u64 << 53) as f64;
        }
        total - 6.0
    };
    let mut slow = [0.0; 3];
    let mut out = Vec::new();
    for _ in 0..frames {
        let draws: [f64; 5] = std::array::from_fn(|_| draw());
        for (i, memory) in [0.98, 0.9, 0.5].into_iter().enumerate() {
            slow[i] = memory * slow[i] + draws[i];
        }
        let [a, b, c] = slow;
        out.extend([
            a + 0.3 * b,
            b - 0.2 * c + 2.0,
            c + 0.1 * a,
            0.5 * a - b + draws[3],
            draws[4] + 0.2 * c,
        ]);
    }
    out
}

fn settings(kinetic_map: bool) -> TicaSettings {
    TicaSettings {
        lag: 5,
        components: 3,
        kinetic_map,
    }
}

#[test]
fn agrees_with_deeptime() {
    let text = include_str!("../../../tests/deeptime/fixture.json");
    let expected: serde_json::Value = serde_json::from_str(text).unwrap();
    let data = [chain(11, 900), chain(23, 700)];
    for (name, kinetic) in [("kinetic", true), ("plain", false)] {
        let tica = Tica::fit(&[&data[0], &data[1]], 5, settings(kinetic)).unwrap();
        let number = |value: &serde_json::Value| value.as_f64().unwrap();
        for (k, value) in tica.eigenvalues.iter().enumerate() {
            let other = number(&expected[name]["values"][k]);
            assert!(
                (value.abs() - other).abs() < 1e-9,
                "{name}: {value} {other}"
            );
        }
        let mut found = [0.0; 3];
        let mut sign = [0.0; 3];
        for (t, row) in data[0].chunks_exact(5).take(20).enumerate() {
            tica.project(row, &mut found);
            for k in 0..3 {
                let other = number(&expected[name]["projected"][t][k]);
                if t == 0 {
                    sign[k] = (found[k] * other).signum();
                }
                let scale = 1e-7 * (1.0 + other.abs());
                assert!(
                    (found[k] - sign[k] * other).abs() < scale,
                    "{name} {k}: {found:?} {other}"
                );
            }
        }
    }
}

#[test]
fn finds_the_memory_of_independent_coordinates() {
    // Of a long series: eigenvalues at lag 5 are memory^5; their errors are below sqrt((1 + a^2)/(1 - a^2)/n), 0.02 here.
    let data = chain(5, 200_000);
    let tica = Tica::fit(&[&data], 5, settings(false)).unwrap();
    for (found, memory) in tica.eigenvalues.iter().zip([0.98_f64, 0.9, 0.5]) {
        assert!((found - memory.powi(5)).abs() < 0.02, "{found} {memory}");
    }
    let times = tica.timescales(5);
    assert!((times[0] / 49.5 - 1.0).abs() < 0.2, "{times:?}");
}

#[test]
fn what_determines_nothing_is_refused() {
    let data = chain(5, 40);
    let fit = |lag: usize, components: usize, data: &[f64]| {
        let settings = TicaSettings {
            lag,
            components,
            kinetic_map: true,
        };
        Tica::fit(&[data], 5, settings)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    for (lag, components) in [(0, 1), (40, 1), (1, 6), (1, 0)] {
        assert!(fit(lag, components, &data).contains("expected at least 1 of each"));
    }
    // Two features that are one.
    let doubled: Vec<f64> = data
        .chunks(5)
        .flat_map(|r| [r[0], r[0], r[0], r[0], r[0]])
        .collect();
    assert!(fit(1, 2, &doubled).contains("at most 1"));
    assert!(Tica::given(vec![0.0; 3], vec![1.0; 4]).is_err());
    let given = Tica::given(vec![1.0, 2.0], vec![1.0, 0.0, 0.5, -1.0]).unwrap();
    let mut out = [0.0; 2];
    given.project(&[2.0, 4.0], &mut out);
    assert_eq!((given.features(), out), (2, [2.0, -2.0]));
}
