//! The program as a user meets it: real runs of the binary, small sizes.

mod bad_input;
mod columns;
mod commands;
mod dependencies;
mod diagnose;
mod extremes;
mod families;
mod free_energy;
mod golden;
mod guide;
mod interrupted;
mod molecule;
mod nothing_lost;
mod particles;
mod report;
mod reproduce;
mod sampling;
mod training;
mod weights;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder of its own for a test, and the binary run inside it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Alanine dipeptide, as `aldp.prmtop` and `aldp.crd`.
    fn molecule(&self) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/aldp-solvation");
        for end in ["prmtop", "crd"] {
            let from = folder.join(format!("alanine-dipeptide.{end}"));
            fs::copy(from, self.path(&format!("aldp.{end}"))).unwrap();
        }
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_diffclf"));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path());
        command
    }

    fn output(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Standard output of a run that must succeed.
    fn run(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "diffclf {arguments}\n{error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Standard error of a run that must succeed.
    fn notes(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "diffclf {arguments}\n{error}");
        error
    }

    /// A run that must end with this exit code and an error that holds all these words.
    fn refused(&self, arguments: &str, code: i32, words: &[&str]) {
        let output = self.output(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(code),
            "diffclf {arguments}\n{error}"
        );
        assert!(!error.contains("panicked"), "{error}");
        for word in words {
            assert!(
                error.contains(word),
                "diffclf {arguments}\n'{word}' is missing in: {error}"
            );
        }
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }

    /// Lines of a run's log.
    fn log(&self, run: &str) -> Vec<serde_json::Value> {
        let text = self.text(&format!("{run}/log.jsonl"));
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// A small training that takes a fraction of a second.
const SMALL: &str = "--width 16 --depth 2 --batch 64 --levels 3 --grid-levels 32 --score-steps 6 --steps 6 --threads 2 --no-report --quiet";

/// A .npy file of version 1.0 around these bytes.
fn write_npy_bytes(path: &Path, descr: &str, fortran: &str, shape: &str, data: &[u8]) {
    let mut header =
        format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    fs::write(path, bytes).unwrap();
}

/// An array of f64 in C order.
fn write_rows(path: &Path, rows: &[Vec<f64>]) {
    let data: Vec<u8> = rows
        .iter()
        .flatten()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let shape = format!("({}, {})", rows.len(), rows.first().map_or(0, Vec::len));
    write_npy_bytes(path, "'<f8'", "False", &shape, &data);
}

/// A .npy file written by the program: type, and numbers.
fn read_npy(bytes: &[u8]) -> (String, Vec<f64>) {
    let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = String::from_utf8(bytes[10..10 + length].to_vec()).unwrap();
    let data = &bytes[10 + length..];
    let numbers = if header.contains("<f4") {
        data.as_chunks()
            .0
            .iter()
            .map(|x| f64::from(f32::from_le_bytes(*x)))
            .collect()
    } else {
        data.as_chunks()
            .0
            .iter()
            .map(|x| f64::from_le_bytes(*x))
            .collect()
    };
    (header, numbers)
}

/// Two unequal clouds in the plane, the same every time.
fn clouds(count: usize) -> Vec<Vec<f64>> {
    // A Weyl sequence and the sum of twelve uniforms: no generator is needed for a plausible cloud.
    let uniform = |k: usize| (k as f64 * 0.618_033_988_749_894_9).fract();
    let normal = |k: usize| {
        (0..12)
            .map(|j| uniform(977 * k + 7919 * j + 1))
            .sum::<f64>()
            - 6.0
    };
    (0..count)
        .map(|k| {
            let (x, y) = if k % 3 == 0 { (2.0, -1.0) } else { (-1.0, 0.5) };
            vec![x + 0.3 * normal(2 * k), y + 0.2 * normal(2 * k + 1)]
        })
        .collect()
}
