//! The free-energy commands: numbers beside known answers, pictures, records, and refusals that name the trouble.

use super::{Place, SMALL, clouds, write_npy_bytes, write_rows};
use std::path::Path;

fn write_series(path: &Path, values: &[f64]) {
    let data: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    write_npy_bytes(
        path,
        "'<f8'",
        "False",
        &format!("({},)", values.len()),
        &data,
    );
}

/// Quantiles of the normal distribution, shuffled: a sample without luck.
fn normals(count: usize, stride: usize) -> Vec<f64> {
    let quantile = |p: f64| {
        // Bisection of the distribution function, itself by Simpson's rule; 3.5 is beyond every quantile asked for.
        let (mut low, mut high) = (-3.5f64, 3.5f64);
        for _ in 0..60 {
            let x = 0.5 * (low + high);
            let h = x / 100.0;
            let f = |i: usize| (-0.5 * (i as f64 * h).powi(2)).exp();
            let inner: f64 = (1..100)
                .map(|i| f(i) * if i % 2 == 1 { 4.0 } else { 2.0 })
                .sum();
            let below = 0.5 + (f(0) + inner + f(100)) * h / 3.0 / std::f64::consts::TAU.sqrt();
            if below < p { low = x } else { high = x }
        }
        0.5 * (low + high)
    };
    let all: Vec<f64> = (0..count)
        .map(|i| quantile((i as f64 + 0.5) / count as f64))
        .collect();
    (0..count).map(|i| all[i * stride % count]).collect()
}

/// Springs 1 and 4 around 0 and 0.5, and one in between: log(Z_2/Z_0) = -log 2.
fn springs(place: &Place, count: usize) -> Vec<f64> {
    let states = [(1.0f64, 0.0), (2.0, 0.25), (4.0, 0.5)];
    let z = normals(count, 389);
    let x: Vec<f64> = states
        .iter()
        .flat_map(|&(k, o)| z.iter().map(move |z| o + z / k.sqrt()))
        .collect();
    let rows: Vec<Vec<f64>> = states
        .iter()
        .map(|&(k, o)| x.iter().map(|x| 0.5 * k * (x - o).powi(2)).collect())
        .collect();
    write_rows(&place.path("u.npy"), &rows);
    write_series(&place.path("x.npy"), &x);
    let work = |from: usize, to: usize| -> Vec<f64> {
        (from * count..(from + 1) * count)
            .map(|n| rows[to][n] - rows[from][n])
            .collect()
    };
    write_series(&place.path("forward.npy"), &work(0, 2));
    write_series(&place.path("reverse.npy"), &work(2, 0));
    // Slopes of the spring constant between 1 and 4 at centre 0: <x^2 / 2> = 1 / (2 k).
    let constants = [1.0f64, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0];
    let slopes: Vec<Vec<f64>> = constants
        .iter()
        .map(|k| z.iter().map(|z| 0.5 * z * z / k).collect())
        .collect();
    write_rows(&place.path("dudl.npy"), &slopes);
    x
}

/// A file that is read the wrong way round says so; correlation that was not measured is not told; walls do not count as correlation.
#[test]
fn awkward_works_and_matrices_are_understood() {
    let place = Place::new();
    let rows: Vec<Vec<f64>> = clouds(60)
        .iter()
        .map(|x| vec![0.5 * x[0] * x[0], 0.5 * (x[0] - 0.3).powi(2)])
        .collect();
    write_rows(&place.path("turned.npy"), &rows);
    place.refused(
        "free-energy mbar turned.npy --counts 30,30",
        2,
        &["60 states and 2 samples", "add --transposed"],
    );
    let text = place.run("free-energy mbar turned.npy --counts 30,30 --transposed");
    assert!(text.contains("delta"), "{text}");
    let works = |wall: bool| -> Vec<Vec<f64>> {
        let numbers = clouds(400).into_iter().enumerate();
        numbers
            .map(|(k, x)| {
                let clash = wall && k % 7 == 0;
                vec![if clash { f64::INFINITY } else { x[1] }]
            })
            .collect()
    };
    write_rows(&place.path("forward.npy"), &works(true));
    write_rows(&place.path("reverse.npy"), &works(false));
    let text = place.run("free-energy fep reverse.npy");
    assert!(!text.contains("inefficiency"), "{text}");
    let text = place.run("free-energy bar forward.npy reverse.npy");
    assert!(!text.contains("400.0"), "{text}");
}

#[test]
fn estimates_stand_beside_known_answers() {
    let place = Place::new();
    springs(&place, 1000);
    let exact = -(2.0f64.ln());
    let text = place.run(
        "free-energy mbar u.npy --counts 1000x3 --bootstrap 20 --convergence --json m.json --page m.html --observable x.npy \
         --coordinate x.npy --bins -2,2,8 --perturbed x.npy --state 2 --quiet",
    );
    for part in [
        "log(Z_B/Z_A)",
        "Delta_f = -delta",
        "scalar overlap",
        "bootstrap error",
        "Expectations",
        "samples",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let document = place.json("m.json");
    let last = &document["relative_to_state_0"][2];
    let (mean, error) = (
        last["mean"].as_f64().unwrap(),
        last["error"].as_f64().unwrap(),
    );
    // Quantiles instead of draws: closer than one error.
    assert!(
        (mean - exact).abs() < error && error < 0.1,
        "{mean} {error}"
    );
    assert!(document["convention"].as_str().unwrap().contains("-delta"));
    let observed = document["expectations"][0]["mean"].as_f64().unwrap();
    assert!((observed - 0.5).abs() < 0.05, "{observed}");
    let page = place.text("m.html");
    assert!(page.matches("<svg").count() == 2 && page.contains("Overlap matrix"));

    place.run("free-energy bar forward.npy reverse.npy --bootstrap 50 --json b.json");
    let found = place.json("b.json")["result"]["delta"]["mean"]
        .as_f64()
        .unwrap();
    assert!((found - exact).abs() < 0.1, "{found}");
    let text =
        place.run("free-energy fep forward.npy --reverse reverse.npy --json f.json --bootstrap 20");
    assert!(text.contains("second-order cumulant"), "{text}");
    let found = place.json("f.json")["forward"]["result"]["exponential"]["mean"]
        .as_f64()
        .unwrap();
    assert!((found - exact).abs() < 0.1, "{found}");

    let text = place.run("free-energy ti dudl.npy --lambdas 1,1.5,2,2.5,3,3.5,4 --independent --json t.json --page t.html");
    assert!(
        text.contains("trapezoid") && text.contains("spline"),
        "{text}"
    );
    let results = place.json("t.json")["results"].clone();
    // -log(Z ratio) of springs 1 and 4 at the same centre: delta = -log 2 as well; the rules differ in their own error.
    let spline = results[2]["delta"]["mean"].as_f64().unwrap();
    assert!((spline - exact).abs() < 0.01, "{spline}");
    assert!(place.text("t.html").contains("integrand"));
    place.refused(
        "free-energy ti dudl.npy --lambdas 1,2,3 --page t.html",
        2,
        &["--force"],
    );
}

#[test]
fn input_that_determines_nothing_is_refused_by_name() {
    let place = Place::new();
    springs(&place, 50);
    place.refused(
        "free-energy mbar u.npy --counts 50,50",
        2,
        &["sample counts", "3 states"],
    );
    place.refused(
        "free-energy mbar u.npy --counts 50,fifty,50",
        2,
        &["--counts", "'fifty'"],
    );
    place.refused(
        "free-energy ti dudl.npy --lambdas 1,2",
        2,
        &["--lambdas has 2", "7 series"],
    );
    place.refused(
        "free-energy mbar x.npy --counts 150",
        2,
        &["two", "--transposed"],
    );
    write_rows(
        &place.path("apart.npy"),
        &[vec![0.0, 0.0, 900.0, 900.0], vec![900.0, 900.0, 0.0, 0.0]],
    );
    place.refused(
        "free-energy mbar apart.npy --counts 2,2",
        3,
        &["{0}", "{1}", "do not connect"],
    );
    write_rows(
        &place.path("nan.npy"),
        &[vec![0.0, f64::NAN], vec![1.0, 1.0]],
    );
    place.refused(
        "free-energy mbar nan.npy --counts 1,1",
        2,
        &["sample 1", "state 0", "NaN"],
    );
    place.refused("free-energy learn x.npy", 2, &["two states"]);
}

#[test]
fn a_path_is_learned_between_two_states() {
    let place = Place::new();
    // The command writes no report, so it has no flag to leave it out.
    let small = SMALL
        .replace("--score-steps 6 --steps 6", "--score-steps 20 --steps 20")
        .replace("--no-report", "");
    let text = place.run(&format!(
        "free-energy learn --system pair-a --end-system pair-b --dim 2 -o run --path-levels 9 --path-samples 60 \
         --end-samples 300 --json l.json --page l.html {small}"
    ));
    for part in [
        "BAR, A and B directly",
        "MBAR over the learned path",
        "TI over the learned path",
        "exact answer",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let document = place.json("l.json");
    let bar = &document["bar"]["delta"];
    let (mean, error) = (
        bar["mean"].as_f64().unwrap(),
        bar["error"].as_f64().unwrap(),
    );
    assert!(mean.abs() < 5.0 * error, "{mean} {error}");
    assert!(
        document["stated"]["error"].as_f64().unwrap() >= document["model_error"].as_f64().unwrap()
    );
    assert_eq!(place.text("l.html").matches("<svg").count(), 2);
    // The same model again, with files: the sum is that of the path and the ends.
    let text =
        place.run("free-energy levels run/model.safetensors --levels 9 --samples 60 --json g.json");
    assert!(text.contains("gap"), "{text}");
    assert_eq!(
        place.json("g.json")["result"]["gaps"]
            .as_array()
            .unwrap()
            .len(),
        9
    );
    place.run(&format!("train --system two-modes -o diffusion {SMALL}"));
    place.run("free-energy levels diffusion/model.safetensors --levels 9 --samples 60");
}
