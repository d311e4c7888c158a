//! Energies put to work: compositions, annealing, flows and distances, on exact systems and on small models.

use super::{Place, SMALL, clouds, read_npy, write_rows};

/// Shares of the four quadrants, upper left first, then right, then the lower two.
fn quadrants(points: &[f64]) -> [f64; 4] {
    let mut shares = [0.0; 4];
    for y in points.chunks_exact(2) {
        let place = usize::from(y[0] > 0.0) + 2 * usize::from(y[1] < 0.0);
        shares[place] += 2.0 / points.len() as f64;
    }
    shares
}

#[test]
fn a_mixture_of_exact_systems_has_their_weights() {
    let place = Place::new();
    // No spaces: the tests split their arguments there.
    let common = "--system A=upper-pair --system B=lower-pair -n 1500 --levels 40 --moves 4 --threshold 0.5 --quiet";
    let table = place.run(&format!("compose 3*(B)or(A) {common} -o x.npy"));
    assert!(
        table.contains("log Z") && table.contains("least overlap"),
        "{table}"
    );
    let (header, points) = read_npy(&place.bytes("x.npy"));
    assert!(
        header.contains("'<f8'") && header.contains("(1500, 2)"),
        "{header}"
    );
    let record = place.json("x.json");
    let families = record["result"]["families"].as_f64().unwrap();
    for (found, exact) in quadrants(&points).iter().zip([0.075, 0.175, 0.525, 0.225]) {
        // 4 sigma of a share, each family counted as one draw.
        let allowed = 4.0 * (exact * (1.0 - exact) / families).sqrt();
        assert!(
            (found - exact).abs() < allowed,
            "{found} {exact} ({families} families)"
        );
    }
    let (value, error) = (
        &record["result"]["log_z"]["value"],
        &record["result"]["log_z"]["error"],
    );
    assert!(
        value.as_f64().unwrap().abs() < 4.0 * error.as_f64().unwrap() + 0.01,
        "{record}"
    );
    // By independent runs: another estimate of the same number, and an error by their spread.
    place.run(&format!("compose 3*(B)or(A) {common} --runs 6 -o r.npy"));
    let record = place.json("r.json");
    let (value, error) = (
        record["result"]["log_z"]["value"].as_f64().unwrap(),
        record["result"]["log_z"]["error"].as_f64().unwrap(),
    );
    // Stretched by Student's factor for six runs already, so that 1.96 of it cover 95 %; four of it far more.
    assert!(value.abs() < 4.0 * error && error < 0.3, "{record}");
    place.refused(
        &format!("compose (A)and(B) {common} --runs 0 -o z.npy"),
        2,
        &["independent runs"],
    );
    // Weighted particles on request, and the same bytes with another number of threads.
    place.run(&format!(
        "compose (A)and(B) {common} --adaptive 0.8 -o w.npy --weights weights.npy --threads 1"
    ));
    place.run(&format!(
        "compose (A)and(B) {common} --adaptive 0.8 -o v.npy --weights other.npy --threads 2"
    ));
    assert_eq!(place.bytes("w.npy"), place.bytes("v.npy"));
    let (_, weights) = read_npy(&place.bytes("weights.npy"));
    assert!(weights.len() == 1500 && (weights.iter().sum::<f64>() - 1.0).abs() < 1e-9);
}

#[test]
fn compositions_that_make_no_sense_are_refused() {
    let place = Place::new();
    let systems = "--system A=upper-pair --system B=lower-pair --quiet -n 200";
    place.refused(
        &format!("compose A&B {systems} -o x.npy"),
        2,
        &["character 2", "'&' has no meaning"],
    );
    place.refused(
        &format!("compose (A)and(C) {systems} -o x.npy"),
        2,
        &["'B' is not in the expression"],
    );
    place.refused(
        "compose (A)and(B) --system A=upper-pair -o x.npy",
        2,
        &["'B' is not known", "--model B=FILE"],
    );
    place.refused(
        &format!("compose A {systems} --system A=mog2 -o x.npy"),
        2,
        &["'B' is not in"],
    );
    place.refused(
        "compose A --system A=rings -o x.npy",
        2,
        &["train a model on it"],
    );
    place.refused("compose A --system A -o x.npy", 2, &["--system A=..."]);
    place.refused("compose A --system A=mog2 -o x.json", 2, &["ends in .npy"]);
    // A path without overlap: a numerical failure, with advice.
    place.refused(
        &format!("compose (A)and(B) {systems} --levels 2 --least-overlap 0.3 -o x.npy"),
        3,
        &["overlap", "adaptive levels"],
    );
    assert!(!place.path("x.npy").exists());
}

#[test]
fn models_are_composed_and_annealed_in_their_datas_coordinates() {
    let place = Place::new();
    let moved: Vec<Vec<f64>> = clouds(400)
        .iter()
        .map(|row| vec![50.0 + 4.0 * row[0], -20.0 + 4.0 * row[1]])
        .collect();
    write_rows(&place.path("a.npy"), &moved);
    write_rows(&place.path("b.npy"), &clouds(300));
    // Hardly any learning: the model is the Gaussian of its data, and every result is known.
    place.run(&format!(
        "train a.npy -o a {SMALL} --rate 1e-9 --average 0 --base gaussian --scale common"
    ));
    place.run(&format!("train b.npy -o b {SMALL} --process edm"));
    let few = "-n 400 --levels 30 --moves 2 --least-overlap 0.01 --quiet";
    place.run(&format!(
        "compose A^2 --model A=a/model.safetensors {few} -o warm.npy"
    ));
    let (_, points) = read_npy(&place.bytes("warm.npy"));
    let mean = points.iter().step_by(2).sum::<f64>() / 400.0;
    // The Gaussian has a spread of about 5 around 50, its square one of 3.6: 400 particles of few families.
    assert!((mean - 50.0).abs() < 2.0, "{mean}");
    place.refused(
        &format!("compose (A)and(B) --model A=a/model.safetensors --model B=b/model.safetensors {few} -o x.npy"),
        2,
        &["different processes", "--process"],
    );
    for (name, extra) in [
        ("smc", ""),
        ("ais", "--method ais"),
        ("diffusion", "--diffusion"),
        ("exchange", "--method exchange --sweeps 20"),
    ] {
        let few = if name == "exchange" {
            "-n 20 --levels 8 --moves 2 --quiet"
        } else {
            few
        };
        let table = place.run(&format!("anneal a {few} {extra} -o {name}.npy"));
        let (_, points) = read_npy(&place.bytes(&format!("{name}.npy")));
        let mean = points.iter().step_by(2).sum::<f64>() / (points.len() / 2) as f64;
        // Without resampling a few particles carry all the weight here, and their mean says little.
        let allowed = if name == "ais" { 20.0 } else { 3.0 };
        assert!((mean - 50.0).abs() < allowed, "{name}: {mean}\n{table}");
        assert!(place.path(&format!("{name}.json")).exists());
    }
    place.refused(&format!("anneal a {few} -o smc.npy"), 2, &["--force"]);
}

#[test]
fn a_model_becomes_a_boltzmann_generator() {
    let place = Place::new();
    place.run(&format!(
        "train --system two-modes --dim 2 -o m {SMALL} --rate 1e-9 --average 0"
    ));
    let table = place.run(
        "anneal m --target two-modes --contest -n 1500 --levels 60 --moves 4 --threshold 0.5 --least-overlap 0.005 -o x.npy --quiet",
    );
    assert!(
        table.contains("importance sampling") && table.contains("ais"),
        "{table}"
    );
    let record = place.json("x.json");
    let smc = &record["results"]["smc"];
    let (value, error) = (
        smc["log_z"]["value"].as_f64().unwrap(),
        smc["log_z"]["error"].as_f64().unwrap(),
    );
    // The target is normalised; the model knows one Gaussian only, and that must not matter.
    assert!(value.abs() < 4.0 * error && error < 0.5, "{value} {error}");
    let (_, points) = read_npy(&place.bytes("x.npy"));
    let share = points.chunks_exact(2).filter(|y| y[0] < 0.0).count() as f64 / 1500.0;
    let n = smc["families"].as_f64().unwrap();
    assert!(
        (share - 2.0 / 3.0).abs() < 4.0 * (2.0 / 9.0 / n).sqrt(),
        "{share} {n}"
    );
    place.refused(
        "anneal m --target moons -o y.npy",
        2,
        &["not known exactly"],
    );
    place.refused("anneal m --contest -o y.npy", 2, &["--target"]);
}

#[test]
fn the_flow_knows_its_log_density() {
    let place = Place::new();
    write_rows(&place.path("a.npy"), &clouds(400));
    // With almost no learning rate the model is exactly the Gaussian of its data at all times: flow and density must agree.
    place.run(&format!(
        "train a.npy -o a {SMALL} --rate 1e-9 --average 0 --base gaussian --scale common"
    ));
    for (name, extra) in [("heun", "--steps 400"), ("chosen", "--tolerance 1e-6")] {
        place.run(&format!(
            "sample a/model.safetensors -n 50 --method flow {extra} -o {name}.npy --log-density {name}-flow.npy --quiet"
        ));
        place.run(&format!(
            "density a/model.safetensors {name}.npy -o {name}-density.npy --quiet"
        ));
        let (_, flow) = read_npy(&place.bytes(&format!("{name}-flow.npy")));
        let (_, density) = read_npy(&place.bytes(&format!("{name}-density.npy")));
        for (a, b) in flow.iter().zip(&density) {
            assert!((a - b).abs() < 0.01, "{name}: {a} {b}");
        }
    }
    place.run("sample a/model.safetensors -n 10 --method reverse-sde --integrator euler-maruyama -o e.npy --json e.json --quiet");
    assert_eq!(place.json("e.json")["integrator"], "euler-maruyama");
    place.refused(
        "sample a/model.safetensors -n 3 -o x.npy --g 1",
        2,
        &["--g belongs to interpolant"],
    );
    place.refused(
        "sample a/model.safetensors -n 3 -o x.npy --method euler",
        2,
        &["flow, interpolant-sde"],
    );
    place.refused(
        "sample a/model.safetensors -n 3 -o x.npy --method interpolant-sde",
        2,
        &["use reverse-sde"],
    );
}

#[test]
fn interpolants_run_from_their_second_endpoint() {
    let place = Place::new();
    place.run(&format!(
        "train --system two-modes --end-system mog2 --dim 2 -o s {SMALL}"
    ));
    for (method, extra) in [
        ("flow", "--steps 50"),
        ("interpolant-sde", "--steps 50 --g 0.3"),
    ] {
        place.run(&format!(
            "sample s/model.safetensors -n 40 --velocity exact --method {method} {extra} -o {method}.npy --quiet"
        ));
        let (_, points) = read_npy(&place.bytes(&format!("{method}.npy")));
        assert!(points.len() == 80 && points.iter().all(|y| y.is_finite()));
    }
    place.refused(
        "sample s/model.safetensors -n 40 --velocity exact --method ddim -o x.npy",
        2,
        &["a diffusion"],
    );
    for command in ["sample s -n 40", "anneal s -n 40"] {
        place.refused(
            &format!("{command} -o x.npy"),
            2,
            &["no velocity", "+velocity", "--velocity exact"],
        );
    }
    let text = place.run("inspect s");
    assert!(text.contains("none: train with +velocity"), "{text}");
    // Both ends are wide, so that a model of a few steps overlaps with itself.
    place.run(
        "anneal s -n 60 --velocity exact --levels 40 --moves 0 --g 0.3 --least-overlap 0 -o bridge.npy --quiet",
    );
    assert_eq!(read_npy(&place.bytes("bridge.npy")).1.len(), 120);
    place.refused(
        "anneal s --target mog2 -o x.npy",
        2,
        &["leave out --target"],
    );
    place.refused(
        "compose A --model A=s/model.safetensors -o x.npy",
        2,
        &["compose models of diffusions"],
    );
}

/// Mean and standard deviation of both coordinates, and the share of points left of 1/2.
fn figures(points: &[f64], weights: Option<&[f64]>) -> ([f64; 2], [f64; 2], f64) {
    let n = points.len() / 2;
    let equal = vec![1.0 / n as f64; n];
    let weights = weights.unwrap_or(&equal);
    let average = |f: &dyn Fn(&[f64]) -> f64| -> f64 {
        let rows = points.chunks_exact(2).zip(weights);
        rows.map(|(y, w)| w * f(y)).sum()
    };
    let mean = [0, 1].map(|i| average(&|y| y[i]));
    let spread = [0, 1].map(|i| average(&|y| (y[i] - mean[i]).powi(2)).sqrt());
    let left = average(&|y| if y[0] < 0.5 { 1.0 } else { 0.0 });
    (mean, spread, left)
}

#[test]
fn a_learned_velocity_joins_two_files_both_ways() {
    let place = Place::new();
    let rows = 1200;
    // Two clouds with the weights 2/3 and 1/3, and one cloud: the same helper, folded onto one of its modes.
    let start = clouds(rows);
    let end: Vec<Vec<f64>> = clouds(3 * rows)
        .into_iter()
        .filter(|y| y[0] > 0.5)
        .map(|y| vec![3.0 + 3.0 * (y[0] - 2.0), 2.0 + 2.5 * (y[1] + 1.0)])
        .collect();
    write_rows(&place.path("a.npy"), &start);
    write_rows(&place.path("b.npy"), &end);
    place.run(
        "train a.npy --end b.npy --objective dsm+diffclf+velocity -o r --width 32 --depth 2 --batch 256 --levels 3 --grid-levels 64 \
         --t-min 0.01 --t-max 0.99 --score-steps 0 --steps 1200 --rate 0.003 --average 0.99 --no-report --quiet",
    );
    let text = place.run("inspect r");
    assert!(text.contains("a network of its own"), "{text}");
    let flat = |rows: &[Vec<f64>]| rows.iter().flatten().copied().collect::<Vec<_>>();
    let agree =
        |name: &str, found: ([f64; 2], [f64; 2], f64), target: &[Vec<f64>], n: f64, model: f64| {
            let (mean, spread, left) = figures(&flat(target), None);
            for i in 0..2 {
                // 4 sigma of a mean of n draws; a standard deviation of such draws varies less. Beside it what a model of a thousand steps
                // may be wrong by, as a share of the spread.
                let allowed = spread[i] * (4.0 / n.sqrt() + model);
                assert!(
                    (found.0[i] - mean[i]).abs() < allowed
                        && (found.1[i] - spread[i]).abs() < allowed,
                    "{name}: {found:?}, expected {mean:?} {spread:?}"
                );
            }
            let allowed = 4.0 * (left * (1.0 - left) / n).sqrt() + model;
            assert!(
                (found.2 - left).abs() < allowed,
                "{name}: {found:?}, expected {left}"
            );
        };
    let ways = [
        ("b.npy", "start", &start, end.len()),
        ("a.npy", "end", &end, rows),
    ];
    for (from, to, target, count) in ways {
        for (method, extra) in [
            ("flow", ""),
            ("interpolant-sde", "--g 0.4 --steps 200"),
            (
                "interpolant-sde",
                "--g {kind=\"bridge\",factor=1.0} --steps 200",
            ),
        ] {
            place.run(&format!(
                "sample r --rows {from} --towards {to} --method {method} {extra} -o {to}.npy --json {to}.json --force --quiet"
            ));
            let (_, points) = read_npy(&place.bytes(&format!("{to}.npy")));
            assert_eq!(points.len(), 2 * count);
            agree(
                &format!("{method} {extra}"),
                figures(&points, None),
                target,
                count as f64,
                0.08,
            );
            let record = place.json(&format!("{to}.json"));
            assert_eq!(record["method"], method);
            assert_eq!(record["interpolant"]["towards"], to);
            assert_eq!(record["interpolant"]["velocity"], "learned");
        }
        // Weighted by the model's energies, whose mode weights take longer to learn than its velocity.
        place.run(&format!(
            "anneal r --rows {from} --towards {to} -n 600 --levels 64 --moves 1 -o w-{to}.npy --weights w.npy --force --quiet"
        ));
        let (_, points) = read_npy(&place.bytes(&format!("w-{to}.npy")));
        let (_, weights) = read_npy(&place.bytes("w.npy"));
        assert!(weights.len() == 600 && weights.iter().all(|w| w.is_finite() && *w >= 0.0));
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let record = place.json(&format!("w-{to}.json"));
        let (ess, log_z) = (
            record["result"]["ess"].as_f64().unwrap(),
            record["result"]["log_z"]["value"].as_f64().unwrap(),
        );
        assert!(ess > 0.2 && log_z.is_finite(), "{record}");
        agree(
            "anneal",
            figures(&points, Some(&weights)),
            target,
            600.0 * ess,
            0.2,
        );
    }
    // The diagnosis generates by the same way and audits the weights of what comes out.
    place.output(
        "diagnose r a.npy --end b.npy --points 400 --generate 1000 --json judged.json --quiet",
    );
    let judged = place.json("judged.json");
    let audit = &judged["diagnosis"]["modes"];
    let wrong = audit["generated_distance"]["mean"].as_f64();
    assert!(wrong.is_some_and(|wrong| wrong < 0.15), "{audit}");
    // The first rows of more are the same, whatever the threads; without a method it is the flow.
    place.run(
        "sample r --rows b.npy -n 50 --threads 1 -o few.npy --quiet --log-density few-density.npy",
    );
    place.run("sample r --rows b.npy --method flow --threads 2 -o all.npy --quiet");
    let (_, few) = read_npy(&place.bytes("few.npy"));
    let (_, all) = read_npy(&place.bytes("all.npy"));
    assert_eq!(few, all[..100]);
    // The model's density of them, and the one that the flow has carried along, differ by the errors of both only.
    place.run("density r few.npy -o density.npy --quiet");
    let (_, carried) = read_npy(&place.bytes("few-density.npy"));
    let (_, density) = read_npy(&place.bytes("density.npy"));
    let differences = carried.iter().zip(&density).map(|(a, b)| (a - b).abs());
    let mean = differences.sum::<f64>() / 50.0;
    assert!(mean < 0.6, "{mean}");
    for (arguments, words) in [
        ("sample r -n 10 -o x.npy", ["b.npy", "--rows"]),
        ("sample r -n 10 --towards end -o x.npy", ["a.npy", "--rows"]),
        (
            "sample r --rows b.npy -n 5000 -o x.npy",
            ["-n is 5000", "give more rows"],
        ),
        ("sample r -o x.npy", ["--number", "required"]),
        (
            "sample r --rows b.npy --velocity exact -o x.npy",
            ["a.npy and b.npy", "+velocity"],
        ),
        (
            "sample r --rows b.npy --g 1 -o x.npy",
            ["--g belongs to", "flow"],
        ),
        (
            "sample r --rows b.npy --method interpolant-sde --g -1 -o x.npy",
            ["-1", "from 0"],
        ),
        (
            "anneal r --rows b.npy -n 100 --g 0 -o x.npy",
            ["--g is 0", "positive"],
        ),
        ("anneal r -n 100 -o x.npy", ["b.npy", "--rows"]),
        ("anneal r --rows b.npy -o x.npy", ["8192", "-n 1200"]),
        (
            "anneal r --rows b.npy --diffusion -o x.npy",
            ["--diffusion", "leave out"],
        ),
    ] {
        place.refused(arguments, 2, &words);
    }
}

#[test]
fn distances_stand_beside_their_floor() {
    let place = Place::new();
    let (a, b) = (clouds(300), clouds(900));
    let moved: Vec<Vec<f64>> = a.iter().map(|row| vec![row[0] + 1.0, row[1]]).collect();
    write_rows(&place.path("a.npy"), &a);
    write_rows(&place.path("b.npy"), &b);
    write_rows(&place.path("moved.npy"), &moved);
    place.run("compare a.npy b.npy --json near.json");
    place.run("compare moved.npy b.npy --json far.json");
    let value = |file: &str, kind: &str, what: &str| {
        place.json(file)["distances"][kind][what]["mean"]
            .as_f64()
            .unwrap()
    };
    for kind in [
        "mmd_squared",
        "sliced_wasserstein",
        "sliced_kolmogorov_smirnov",
        "energy_distance",
    ] {
        assert!(
            value("near.json", kind, "value") < 5.0 * value("near.json", kind, "floor") + 0.02,
            "{kind}"
        );
        assert!(
            value("far.json", kind, "value") > 3.0 * value("far.json", kind, "floor"),
            "{kind}"
        );
    }
    // The shift is 1 along one of two axes: sliced W2 is near sqrt(1/2).
    let found = value("far.json", "sliced_wasserstein", "value");
    assert!((found - 0.707).abs() < 0.12, "{found}");
    let table = place.run("compare a.npy --system two-modes");
    assert!(
        table.contains("mode weights") && table.contains("floor"),
        "{table}"
    );
    place.refused("compare a.npy", 2, &["B.npy"]);
    write_rows(
        &place.path("wide.npy"),
        &[vec![1.0, 2.0, 3.0], vec![1.0, 2.0, 4.0]],
    );
    place.refused("compare a.npy wide.npy", 2, &["3 columns", "same kind"]);
    place.refused("compare a.npy b.npy --json near.json", 2, &["--force"]);
}
