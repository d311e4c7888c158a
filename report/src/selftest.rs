//! The checks of this program on this machine, as a table.

use crate::page::Table;
use diffclf::engine::Isa;
use diffclf_run::selftest::Checked;

/// One row for each check.
pub fn table(checks: &[Checked]) -> Table {
    let kernels: Vec<_> = Isa::available().iter().map(Isa::to_string).collect();
    Table {
        caption: format!(
            "diffclf {} on this machine (kernels: {})",
            env!("CARGO_PKG_VERSION"),
            kernels.join(", ")
        ),
        header: ["check", "result", "time", "found"]
            .map(String::from)
            .to_vec(),
        rows: checks
            .iter()
            .map(|check| {
                let verdict = if check.passed { "passed" } else { "FAILED" };
                vec![
                    check.name.to_string(),
                    verdict.into(),
                    format!("{:.1} s", check.time.as_secs_f64()),
                    check.found.clone(),
                ]
            })
            .collect(),
    }
}
