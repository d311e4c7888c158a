//! Bad input of every kind: exit code 2 and a sentence that says what to do, or the input is handled.

use super::{Place, SMALL, clouds, read_npy, write_npy_bytes, write_rows};
use std::fs;

#[test]
fn files_that_are_no_usable_array_are_refused() {
    let place = Place::new();
    let f8 = |values: &[f64]| {
        values
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let write = |name: &str, descr: &str, shape: &str, data: &[u8]| {
        write_npy_bytes(&place.path(name), descr, "False", shape, data);
    };
    fs::write(place.path("empty-file.npy"), "").unwrap();
    fs::write(place.path("text.npy"), "1.0, 2.0\n3.0, 4.0\n").unwrap();
    fs::create_dir(place.path("folder.npy")).unwrap();
    write("objects.npy", "'|O'", "(2, 2)", &[0; 32]);
    write("words.npy", "'<U4'", "(2, 2)", &[0; 64]);
    write("complex.npy", "'<c16'", "(1, 2)", &[0; 32]);
    write(
        "fields.npy",
        "[('x', '<f8'), ('y', '<f8')]",
        "(2,)",
        &[0; 32],
    );
    write("no-rows.npy", "'<f8'", "(0, 3)", &[]);
    write("no-columns.npy", "'<f8'", "(3, 0)", &[]);
    write("number.npy", "'<f8'", "()", &[0; 8]);
    write("cut.npy", "'<f8'", "(4, 2)", &[0; 60]);
    write(
        "nan.npy",
        "'<f8'",
        "(3, 2)",
        &f8(&[1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN]),
    );
    write(
        "infinite.npy",
        "'<f8'",
        "(2, 2)",
        &f8(&[1.0, f64::INFINITY, 3.0, 4.0]),
    );
    write("large.npy", "'<f8'", "(2, 2)", &f8(&[1.0, 1e300, 3.0, 4.0]));
    write(
        "constant.npy",
        "'<f8'",
        "(3, 2)",
        &f8(&[1.0, 7.0, 2.0, 7.0, 3.0, 7.0]),
    );
    write("one-row.npy", "'<f8'", "(1, 2)", &f8(&[1.0, 7.0]));
    let cases: [(&str, &[&str]); 17] = [
        ("missing.npy", &["missing.npy", "looked in"]),
        ("empty-file.npy", &["an empty file", "numpy.save"]),
        ("text.npy", &["expected a .npy file", "numpy.save"]),
        ("folder.npy", &["give the path of a file inside it"]),
        ("objects.npy", &["objects", "real numbers"]),
        ("words.npy", &["real numbers"]),
        ("complex.npy", &["complex", "real numbers"]),
        ("fields.npy", &["structured", "structured_to_unstructured"]),
        ("no-rows.npy", &["empty", "(0, 3)"]),
        ("no-columns.npy", &["empty", "(3, 0)"]),
        ("number.npy", &["single number"]),
        ("cut.npy", &["64 bytes", "60 bytes", "damaged"]),
        ("nan.npy", &["row 2, column 1", "NaN", "isfinite"]),
        ("infinite.npy", &["row 0, column 1", "inf"]),
        ("large.npy", &["row 0, column 1", "rescale"]),
        ("constant.npy", &["column 1", "drop it"]),
        ("one-row.npy", &["one row", "no density"]),
    ];
    for (name, words) in cases {
        place.refused(&format!("train {name} -o run {SMALL}"), 2, words);
        assert!(
            !place.path("run").exists(),
            "{name}: a refused run leaves nothing behind"
        );
    }
}

/// The same numbers in other types and orders give the same densities to the last bit.
#[test]
fn every_type_and_order_of_numbers_is_read() {
    let place = Place::new();
    // Multiples of 1/8 are exact in every type.
    let rows: Vec<Vec<f64>> = clouds(40)
        .iter()
        .map(|row| row.iter().map(|x| (x * 8.0).round() / 8.0).collect())
        .collect();
    write_rows(&place.path("rows.npy"), &rows);
    place.run(&format!("train rows.npy -o run {SMALL}"));
    place.run("density run/model.safetensors rows.npy -o expected.npy --quiet");
    let by_rows = || rows.iter().flatten();
    let by_columns = || (0..2).flat_map(|column| rows.iter().map(move |row| &row[column]));
    let cases: [(&str, &str, Vec<u8>); 5] = [
        (
            "'<f4'",
            "False",
            by_rows().flat_map(|x| (*x as f32).to_le_bytes()).collect(),
        ),
        (
            "'>f8'",
            "False",
            by_rows().flat_map(|x| x.to_be_bytes()).collect(),
        ),
        (
            "'>f4'",
            "True",
            by_columns()
                .flat_map(|x| (*x as f32).to_be_bytes())
                .collect(),
        ),
        (
            "'<f8'",
            "True",
            by_columns().flat_map(|x| x.to_le_bytes()).collect(),
        ),
        (
            "'=f8'",
            "False",
            by_rows().flat_map(|x| x.to_ne_bytes()).collect(),
        ),
    ];
    for (descr, fortran, data) in cases {
        write_npy_bytes(&place.path("other.npy"), descr, fortran, "(40, 2)", &data);
        place.run("density run/model.safetensors other.npy -o found.npy --force --quiet");
        assert!(
            place.bytes("found.npy") == place.bytes("expected.npy"),
            "{descr} {fortran}"
        );
        place.run(&format!("train other.npy -o other --force {SMALL}"));
    }
    let (header, values) = read_npy(&place.bytes("expected.npy"));
    assert!(
        header.contains("(40,)") && values.iter().all(|x| x.is_finite()),
        "{header}"
    );
}

#[test]
fn fewer_rows_than_a_batch_are_handled_with_a_word() {
    let place = Place::new();
    write_rows(&place.path("few.npy"), &clouds(30));
    let notes =
        place.notes("train few.npy --width 8 --depth 1 --score-steps 2 --steps 2 --threads 1");
    assert!(notes.contains("batch lowered from 512 to 30"), "{notes}");
    assert!(notes.contains("no rows held out"), "{notes}");
    assert!(place.path("runs/few/model.safetensors").is_file());
    // The same command continues, although the batch it asks for was lowered.
    place.run("train few.npy --width 8 --depth 1 --score-steps 2 --steps 2 --threads 1 --batch 2048 --resume");
}

#[test]
fn impossible_settings_are_refused_by_name() {
    let place = Place::new();
    write_rows(&place.path("rows.npy"), &clouds(50));
    write_rows(
        &place.path("wide.npy"),
        &[vec![0.0, 1.0, 2.0], vec![1.0, 3.0, 0.0]],
    );
    let cases: [(&str, &[&str]); 27] = [
        ("", &["nothing to learn from", "--system"]),
        ("rows.npy --system mog2", &["both a file and --system"]),
        ("--system mog3 --dim 2", &["'mog3'", "checkerboard"]),
        ("--system mog40", &["--dim"]),
        ("--system rings --dim 3", &["plane"]),
        ("--system mog2 --dim 2 --held-out 0.1", &["--samples"]),
        ("--system mog2 --dim 2 --samples 1", &["at least 2"]),
        ("rows.npy --dim 3", &["2 columns"]),
        ("rows.npy --process vq", &["vq", "trigonometric"]),
        ("rows.npy --process linear", &["--end"]),
        ("rows.npy --process vp --end rows.npy", &["two are given"]),
        ("rows.npy --end wide.npy", &["dimension 2", "3"]),
        (
            "rows.npy --end-system mog2 --end wide.npy",
            &["both a file and --end-system"],
        ),
        ("rows.npy --objective dsm+dsn", &["dsn", "diffclf"]),
        ("rows.npy --objective dsm+dsm", &["twice"]),
        ("rows.npy --objective dsm+-1*diffclf", &["weight"]),
        ("rows.npy --levels 1", &["levels", "diffclf"]),
        ("rows.npy --levels 20 --grid-levels 8", &["20", "8"]),
        ("rows.npy --batch 0", &["batch"]),
        ("rows.npy --steps 0 --score-steps 0", &["no steps"]),
        ("rows.npy --rate -1", &["rate"]),
        ("rows.npy --held-out 1.5", &["between 0 and 1"]),
        ("rows.npy --width 0", &["width"]),
        ("rows.npy --t-min 0.5 --t-max 0.1", &["time grid"]),
        ("rows.npy --threads 0", &["--threads"]),
        ("rows.npy --kernel mmx", &["mmx", "portable"]),
        ("rows.npy --stepz 3", &["--stepz"]),
    ];
    for (flags, words) in cases {
        place.refused(&format!("train {flags} -o run"), 2, words);
        assert!(!place.path("run").exists(), "{flags}");
    }
}

#[test]
fn wrong_configurations_are_refused_by_key() {
    let place = Place::new();
    write_rows(&place.path("rows.npy"), &clouds(50));
    for (text, words) in [
        ("stepz = 3", ["stepz", "line 1"]),
        ("batch = 64\nrate = \"fast\"", ["rate", "line 2"]),
        ("[process]\nkind = \"vp\"\nbeta = 2.0", ["beta", "run.toml"]),
        ("steps = = 3", ["run.toml", "line 1"]),
    ] {
        fs::write(place.path("run.toml"), text).unwrap();
        place.refused("train rows.npy --config run.toml -o run", 2, &words);
    }
    place.refused(
        "train rows.npy --config none.toml -o run",
        2,
        &["none.toml", "looked in"],
    );
}

#[test]
fn damaged_models_are_refused_by_every_command() {
    let place = Place::new();
    write_rows(&place.path("rows.npy"), &clouds(50));
    place.run(&format!("train rows.npy -o run {SMALL}"));
    let bytes = place.bytes("run/model.safetensors");
    let mut altered = bytes.clone();
    altered[bytes.len() / 2] ^= 1;
    fs::write(place.path("cut.safetensors"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(place.path("altered.safetensors"), altered).unwrap();
    fs::write(place.path("text.safetensors"), "no model at all, only text").unwrap();
    fs::write(place.path("empty.safetensors"), "").unwrap();
    for (name, words) in [
        ("cut.safetensors", "truncated"),
        ("altered.safetensors", "altered"),
        ("text.safetensors", "not a diffclf model file"),
        ("empty.safetensors", "bytes"),
        ("missing.safetensors", "looked in"),
    ] {
        for command in [
            format!("inspect {name}"),
            format!("density {name} rows.npy -o out.npy"),
            format!("sample {name} -n 3 -o out.npy"),
            format!("evaluate {name} --system mog2"),
        ] {
            place.refused(&command, 2, &[name, words]);
        }
    }
    place.refused(
        "sample run/checkpoint.safetensors -n 3 -o out.npy",
        2,
        &["checkpoint", "expected a model"],
    );
    assert!(!place.path("out.npy").exists());
}

#[test]
fn commands_on_a_model_refuse_what_does_not_fit() {
    let place = Place::new();
    write_rows(&place.path("rows.npy"), &clouds(50));
    write_rows(&place.path("wide.npy"), &[vec![0.0, 1.0, 2.0]]);
    write_rows(
        &place.path("nan.npy"),
        &[vec![0.0, 1.0], vec![f64::NAN, 2.0]],
    );
    place.run(&format!("train rows.npy -o run {SMALL}"));
    place.run(&format!("train --system moons -o moons {SMALL}"));
    place.run(&format!(
        "train rows.npy --end-system moons -o bridge {SMALL}"
    ));
    fs::write(place.path("precious.npy"), "precious").unwrap();
    let model = "run/model.safetensors";
    let cases: [(String, &[&str]); 14] = [
        (
            format!("density {model} wide.npy -o out.npy"),
            &["3 coordinates", "has 2"],
        ),
        (
            format!("density {model} nan.npy -o out.npy"),
            &["row 1, column 0"],
        ),
        (
            format!("density {model} rows.npy --time 0 -o out.npy"),
            &["(nearest to the data)", "0.9999"],
        ),
        (
            format!("density {model} rows.npy --what entropy -o out.npy"),
            &["log-density"],
        ),
        (
            format!("density {model} rows.npy -o precious.npy"),
            &["--force"],
        ),
        (format!("sample {model} -n 0 -o out.npy"), &["at least 1"]),
        (
            format!("sample {model} -n 3 --steps 1 -o out.npy"),
            &["at least 2"],
        ),
        (format!("sample {model} -n 3 --eta 2 -o out.npy"), &["eta"]),
        (
            format!("sample {model} -n 3 --method ode -o out.npy"),
            &["'ode'", "reverse-sde"],
        ),
        (
            format!("sample {model} -n 3 --method reverse-sde --eta 1 -o out.npy"),
            &["--eta belongs to ddim"],
        ),
        (
            format!("evaluate {model}"),
            &["trained on a file", "--system"],
        ),
        (
            format!("evaluate {model} --system rings"),
            &["not known exactly", "mog40"],
        ),
        (
            "evaluate moons/model.safetensors".into(),
            &["moons", "two-modes"],
        ),
        (
            "sample bridge/model.safetensors -n 3 -o out.npy".into(),
            &["no velocity", "+velocity"],
        ),
    ];
    for (command, words) in cases {
        place.refused(&command, 2, words);
        assert!(!place.path("out.npy").exists(), "{command}");
    }
    place.refused(
        &format!("density {model} rows.npy -o no/such/out.npy"),
        2,
        &["create the folder"],
    );
    assert_eq!(place.text("precious.npy"), "precious");
}

/// Parameters that a process or a sampler of times cannot have, some of which were found in the middle of a run.
#[test]
fn impossible_parameters_are_refused_before_the_run() {
    let place = Place::new();
    write_rows(&place.path("rows.npy"), &clouds(50));
    for sigma_max in ["-1.0", "0.0", "nan", "inf", "1e-323"] {
        let process = format!("--process {{kind=\"edm\",sigma_max={sigma_max}}}");
        place.refused(
            &format!("train rows.npy -o run {SMALL} {process}"),
            2,
            &["sigma_max"],
        );
    }
    for times in [
        "{kind=\"log-snr-normal\",mean=8.4,std=1.0}",
        "{kind=\"close\",share=1e-15}",
    ] {
        place.refused(
            &format!("train rows.npy -o run {SMALL} --times {times}"),
            2,
            &[],
        );
    }
    assert!(!place.path("run").exists());
}

/// What never ends, or is far too much, is refused before it is read.
#[cfg(target_os = "linux")]
#[test]
fn pipes_devices_and_floods_are_refused() {
    let place = Place::new();
    write_rows(&place.path("rows.npy"), &clouds(50));
    place.run(&format!("train rows.npy -o run {SMALL}"));
    let before = place.bytes("run/model.safetensors");
    let made = std::process::Command::new("mkfifo")
        .arg(place.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    for endless in ["pipe", "/dev/zero"] {
        for command in [
            format!("train {endless} -o new"),
            format!("train rows.npy --config {endless} -o new"),
            format!("density run {endless} -o out.npy"),
            format!("inspect {endless}"),
            format!("free-energy fep {endless}"),
        ] {
            place.refused(&command, 2, &["device or a pipe"]);
        }
    }
    // Zeroes as far as a disk could hold: no model begins like this.
    let file = fs::File::create(place.path("sparse.safetensors")).unwrap();
    file.set_len(1 << 42).unwrap();
    for command in [
        "inspect sparse.safetensors",
        "sample sparse.safetensors -n 3 -o out.npy",
    ] {
        place.refused(command, 2, &["not a safetensors file"]);
    }
    // A header that is plausible, in a file that is not.
    let bytes = [&8u64.to_le_bytes()[..], b"{       "].concat();
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
    place.refused("inspect sparse.safetensors", 2, &["of memory", "at hand"]);
    // Nothing of an old run goes before the new one is known to fit.
    for flood in [
        "--system mog2 --dim 2 --samples 1000000000000",
        "rows.npy --width 16384 --depth 64",
    ] {
        place.refused(&format!("train {flood} -o run --force"), 2, &["memory"]);
        assert!(place.bytes("run/model.safetensors") == before);
    }
    // Threads that do not fit the address space.
    let program = env!("CARGO_BIN_EXE_diffclf");
    let limited =
        format!("ulimit -v 900000; exec {program} density run rows.npy -o out.npy --threads 1024");
    let output = std::process::Command::new("sh")
        .args(["-c", &limited])
        .current_dir(place.folder.path())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("number of threads"), "{error}");
}

/// Several copies would do the same work in the same folder.
#[test]
fn several_processes_need_a_program_for_them() {
    let place = Place::new();
    let mut command = place.command("inspect m");
    let output = command.env("OMPI_COMM_WORLD_SIZE", "2").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("2 processes were started together") && text.contains("--features mpi"),
        "{text}"
    );
}
