//! The one budget of memory: what a piece of work will need at least, compared with what this machine has to give, before the work
//! begins. Estimates are from below, by the largest buffers alone: a refusal is always right.

use crate::error::{Error, Result};
use diffclf::energy::ModelSpec;

/// Bytes that a process may still take: of the machine, of its control group and of its own limit, whichever is least. None where the
/// system does not tell.
pub fn available() -> Option<u64> {
    let text = |path: &str| std::fs::read_to_string(path).ok();
    let number = |path: &str| text(path)?.trim().parse::<u64>().ok();
    let machine = text("/proc/meminfo").and_then(|text| field(&text, "MemAvailable:"));
    // Of a container, this is its own group.
    let group = number("/sys/fs/cgroup/memory.max")
        .zip(number("/sys/fs/cgroup/memory.current"))
        .map(|(most, now)| {
            // Pages of files are given back when they are needed.
            let stat = text("/sys/fs/cgroup/memory.stat").unwrap_or_default();
            let cache = stat.lines().find_map(|line| line.strip_prefix("file "));
            let cache = cache.and_then(|n| n.parse().ok()).unwrap_or(0);
            most.saturating_sub(now.saturating_sub(cache))
        });
    let own = text("/proc/self/limits").and_then(|text| {
        let line = text.lines().find(|l| l.starts_with("Max address space"))?;
        let most: u64 = line.split_whitespace().nth(3)?.parse().ok()?;
        let used = field(&text_of_status()?, "VmSize:")?;
        Some(most.saturating_sub(used))
    });
    [machine, group, own].into_iter().flatten().min()
}

fn text_of_status() -> Option<String> {
    std::fs::read_to_string("/proc/self/status").ok()
}

/// A line such as `MemAvailable: 123 kB`, in bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Refuses work that needs more than there is. `what` says what it is about, such as "samples is 4294967296".
pub fn refuse(what: impl Into<String>, needed: u128) -> Result<()> {
    refuse_beyond(available().unwrap_or(1 << 46), what.into(), needed)
}

fn refuse_beyond(available: u64, what: String, needed: u128) -> Result<()> {
    if needed <= u128::from(available) {
        return Ok(());
    }
    Err(Error::Memory {
        what,
        needed,
        available,
    })
}

/// Bytes of so many rows of numbers of this many bytes.
pub fn rows(rows: usize, columns: usize, bytes: usize) -> u128 {
    rows as u128 * columns as u128 * bytes as u128
}

/// Refuses a setting whose value asks for more rows than fit.
pub fn refuse_rows(
    setting: &'static str,
    count: usize,
    columns: usize,
    bytes: usize,
) -> Result<()> {
    let needed = rows(count, columns, bytes);
    match refuse(String::new(), needed) {
        Err(Error::Memory {
            needed, available, ..
        }) => Err(Error::setting(
            setting,
            count,
            format!(
                "no more than fit in memory: this needs {} and {} are at hand",
                bytes_text(needed),
                bytes_text(available.into())
            ),
        )),
        other => other,
    }
}

/// Refuses a model that cannot be evaluated at a single point.
pub fn refuse_model(spec: &ModelSpec) -> Result<()> {
    let parameters = spec.layout().len() as u128;
    let needed = 12 * parameters + spec.bytes_of_point();
    let what = format!(
        "a model of {parameters} parameters in dimension {}",
        spec.dim
    );
    refuse(what, needed)
}

/// Refuses a training that cannot take a single step: parameters, both moments, average, gradient, the sums of its chunks and the
/// packed matrices.
pub fn refuse_training(spec: &ModelSpec, levels: usize) -> Result<()> {
    let parameters = spec.layout().len() as u128;
    let copies = 16;
    let needed = 4 * copies * parameters + levels as u128 * spec.bytes_of_point();
    let what = format!("training {parameters} parameters in dimension {}", spec.dim);
    refuse(what, needed)
}

/// Bytes in words.
pub fn bytes_text(bytes: u128) -> String {
    match bytes {
        0..1_000_000 => format!("{bytes} bytes"),
        1_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diffclf::network::NetworkSpec;
    use diffclf::process::Process;

    #[test]
    fn what_does_not_fit_is_refused_with_both_numbers() {
        let message = refuse_beyond(5_000_000_000, "a thing".into(), 7_500_000_000)
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("a thing") && message.contains("7.5 GB"),
            "{message}"
        );
        assert!(message.contains("5.0 GB"), "{message}");
        refuse_beyond(5, "a thing".into(), 5).unwrap();
        refuse("little", 1).unwrap();
        for count in [usize::MAX, 1 << 50] {
            let refused = refuse_rows("samples", count, 3, 8).unwrap_err();
            assert!(matches!(
                refused,
                Error::Setting {
                    name: "samples",
                    ..
                }
            ));
        }
        refuse_rows("samples", 1000, 3, 8).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_machine_tells_what_it_has() {
        let found = available().unwrap();
        assert!(found > 1 << 20 && found < 1 << 50, "{found}");
        assert_eq!(
            field("MemFree: 3 kB\nMemAvailable:   12 kB\n", "MemAvailable:"),
            Some(12288)
        );
    }

    #[test]
    fn models_are_measured_before_they_are_built() {
        let model = |dim: usize, network| ModelSpec {
            network,
            ..ModelSpec::new(dim, Process::default())
        };
        let wide = NetworkSpec::Mlp {
            width: 1 << 14,
            depth: 64,
        };
        // 16384² x 64 weights.
        assert!(refuse_training(&model(2, wide.clone()), 3).is_err());
        assert!(refuse_model(&model(2, wide)).is_err());
        let many = NetworkSpec::Pairs {
            particles: 1 << 19,
            width: 8,
            depth: 2,
        };
        assert!(refuse_model(&model(1 << 20, many)).is_err());
        refuse_training(&ModelSpec::new(64, Process::default()), 8).unwrap();
    }
}
