//! What the program computed before, to the bit: losses of a few steps of every objective and process, a stored model and
//! checkpoint, samples of every sampler for a fixed seed. A change of a random stream, of a format or of the arithmetic is seen
//! here first. When such a change is meant, `DIFFCLF_WRITE_GOLDEN=1 cargo test -p diffclf-cli golden` writes the new numbers;
//! the commit says why.

use super::{Place, clouds, read_npy, write_rows};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Numbers by the name of their case.
type Golden = BTreeMap<String, Vec<f64>>;

/// The kernels that gave the stored numbers; others round differently.
fn kernel() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        return "avx2";
    }
    "portable"
}

const TINY: &str = "--width 8 --depth 2 --features 8 --batch 32 --grid-levels 16 --score-steps 2 --steps 2 --log-every 1 --threads 1 --no-report --quiet";

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/program/golden")
        .join(name)
}

/// Compares with what is stored in `golden/NAME.json`. Other kernels and platforms round differently: there a part in ten thousand
/// is allowed.
fn compare(name: &str, found: &Golden) {
    let path = stored(&format!("{name}.json"));
    if std::env::var_os("DIFFCLF_WRITE_GOLDEN").is_some() {
        let text = serde_json::to_string_pretty(found).unwrap();
        fs::write(&path, text + "\n").unwrap();
        return;
    }
    let expected: Golden = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let names = |golden: &Golden| golden.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(&expected));
    let exact = cfg!(target_os = "linux") && kernel() == "avx2";
    let changed: Vec<_> = found
        .iter()
        .filter(|(case, numbers)| {
            let before = &expected[*case];
            let same =
                |a: &f64, b: &f64| a == b || !exact && (a - b).abs() < 1e-4 * (1.0 + b.abs());
            before.len() != numbers.len() || !numbers.iter().zip(before).all(|(a, b)| same(a, b))
        })
        .map(|(case, numbers)| {
            format!(
                "{case}\n  before {:?}\n  now    {numbers:?}",
                expected[case]
            )
        })
        .collect();
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

/// Every loss in a run's log.
fn losses(place: &Place, run: &str) -> Vec<f64> {
    place
        .log(run)
        .iter()
        .flat_map(|entry| {
            let terms = entry["loss"].as_object().unwrap().values();
            terms.map(|loss| loss.as_f64().unwrap()).collect::<Vec<_>>()
        })
        .collect()
}

fn numbers(place: &Place, name: &str) -> Vec<f64> {
    read_npy(&place.bytes(name)).1
}

const DIFFUSIONS: [&str; 3] = ["vp", "ve", "edm"];
const INTERPOLANTS: [&str; 2] = ["linear", "trigonometric"];

#[test]
fn losses_are_what_they_were() {
    let place = Place::new();
    let mut found = Golden::new();
    let mut train = |case: String, arguments: &str| {
        let run = format!("run{}", found.len());
        place.run(&format!(
            "train -o {run} {TINY} --kernel {} {arguments}",
            kernel()
        ));
        found.insert(case, losses(&place, &run));
    };
    let everywhere = [
        "dsm",
        "dsm+diffclf",
        "dsm+binary-diffclf",
        "dsm+binary-bregman(generator=kl)",
        "dsm+bregman(generator=js)",
        "dsm+known-diffclf",
        "dsm+ctsm",
        "dsm+tsm",
        "dsm+dre-infinity",
        "dsm+target-score",
    ];
    for process in DIFFUSIONS {
        for objective in everywhere
            .into_iter()
            .chain(["dsm+0.1*fokker-planck", "dsm+0.1*bayes"])
        {
            train(
                format!("{process} {objective}"),
                &format!("--system mog2 --dim 2 --process {process} --objective {objective}"),
            );
        }
    }
    for process in INTERPOLANTS {
        for objective in everywhere.into_iter().chain(["dsm+diffclf+velocity"]) {
            train(
                format!("{process} {objective}"),
                &format!(
                    "--system mog2 --end-system two-modes --dim 2 --process {process} --objective {objective}"
                ),
            );
        }
    }
    for times in [
        "multiscale",
        "close",
        "grid",
        "grid-stratified",
        "uniform",
        "stratified",
        "log-snr-normal",
    ] {
        train(
            format!("times {times}"),
            &format!("--system mog40 --dim 3 --times {times}"),
        );
    }
    for form in [
        "inner-product",
        "inner-product-plus-scalar",
        "squared-norm",
        "residual-squared-norm",
        "scalar",
    ] {
        train(
            format!("form {form}"),
            &format!("--system moons --form {form}"),
        );
    }
    train(
        "particles".into(),
        "--system mog2 --dim 6 --particles 3 --samples 100",
    );
    write_rows(&place.path("rows.npy"), &clouds(700));
    train("file".into(), "rows.npy --no-standardise");
    compare("losses", &found);
}

/// A copy of a stored run, with the kernels of its settings named: a run that is resumed keeps them.
fn copy_run(place: &Place, name: &str) {
    fs::create_dir(place.path(name)).unwrap();
    for file in [
        "checkpoint.safetensors",
        "config.toml",
        "log.jsonl",
        "model.safetensors",
    ] {
        fs::copy(stored(name).join(file), place.path(name).join(file)).unwrap();
    }
    let config = place.path(name).join("config.toml");
    let settings = fs::read_to_string(&config).unwrap();
    let settings = match settings.contains("kernel =") {
        true => settings.replace("avx2", kernel()),
        false => format!("kernel = \"{}\"\n{settings}", kernel()),
    };
    fs::write(&config, settings).unwrap();
}

/// `run` was made with the first random streams and `run-2` with the second.
#[test]
fn a_stored_run_is_what_it_was() {
    let place = Place::new();
    copy_run(&place, "run");
    copy_run(&place, "run-2");
    write_rows(&place.path("points.npy"), &clouds(6));
    let mut found = Golden::new();
    let mut density = |case: &str, arguments: &str| {
        place.run(&format!(
            "density {arguments} points.npy -o out.npy --force --quiet --threads 1 --kernel {}",
            kernel()
        ));
        found.insert(case.into(), numbers(&place, "out.npy"));
    };
    density("log-density", "run");
    density("energy at a level", "run --what energy --time 0.5");
    density("score", "run --what score --time 0.03");
    density("time score", "run --what time-score --time 0.3");
    // Both checkpoints were cut off in the second stage. With other draws a run would not go on as it began.
    let resume = "--resume --no-report --quiet --threads 1";
    place.refused(
        &format!("train -o run {resume}"),
        2,
        &["random streams is 1"],
    );
    place.run(&format!("train -o run-2 {resume}"));
    density("log-density after resuming", "run-2");
    density("score after resuming", "run-2 --what score");
    compare("stored", &found);
}

#[test]
fn samples_are_what_they_were() {
    let place = Place::new();
    let model = stored("run/model.safetensors");
    fs::copy(&model, place.path("m.safetensors")).unwrap();
    let mut found = Golden::new();
    let mut sample = |case: &str, arguments: &str| {
        place.run(&format!(
            "{arguments} -o out.npy --force --quiet --threads 1 --kernel {} --seed 3",
            kernel()
        ));
        found.insert(case.into(), numbers(&place, "out.npy"));
    };
    for (case, method) in [
        ("ddim", "--method ddim"),
        ("ddim with noise", "--method ddim --eta 0.7"),
        ("reverse SDE", "--method reverse-sde"),
        (
            "reverse SDE by Euler",
            "--method reverse-sde --integrator euler-maruyama",
        ),
        ("flow", "--method flow"),
        ("adaptive flow", "--method flow --tolerance 0.01"),
    ] {
        sample(case, &format!("sample m.safetensors -n 5 {method}"));
    }
    let anneal = "anneal m.safetensors -n 24 --moves 3 --least-overlap 0";
    for kernel in ["mala", "hmc", "random-walk", "baoab", "unadjusted"] {
        sample(
            &format!("smc {kernel}"),
            &format!("{anneal} --moving {kernel}"),
        );
    }
    for scheme in ["systematic", "stratified", "residual", "multinomial"] {
        sample(
            &format!("smc {scheme}"),
            &format!("{anneal} --threshold 0.9 --resampling {scheme}"),
        );
    }
    sample("ais", &format!("{anneal} --method ais"));
    sample(
        "smc by diffusion",
        &format!("{anneal} --diffusion --target mog2"),
    );
    sample(
        "exchange",
        "anneal m.safetensors --method exchange -n 4 --sweeps 6 --moves 2",
    );
    sample(
        "composition",
        "compose A^0.5 --model A=m.safetensors -n 24 --moves 2 --least-overlap 0",
    );
    place.run(&format!(
        "train -o bridge --system mog2 --end-system two-modes --dim 2 --objective dsm+diffclf+velocity {TINY} --kernel {}",
        kernel()
    ));
    sample("bridge by flow", "sample bridge -n 5");
    sample(
        "bridge by SDE",
        "sample bridge -n 5 --method interpolant-sde --g 0.5 --towards end",
    );
    compare("samples", &found);
}
