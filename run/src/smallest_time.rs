//! The smallest time and the spacing of the grid: as fine as the data are, and no finer.

use crate::error::Result;
use crate::named::Named;
use crate::notice::Notice;
use crate::settings::Settings;
use diffclf::process::{Process, Spacing, TimeGrid};

/// Sets the smallest time, unless it is given, where the width of the data's finest structure is known; `spread` is the standard
/// deviation of the data in the same coordinates.
pub fn fill(
    settings: &mut Settings,
    process: &Process,
    finest: f64,
    spread: f64,
) -> Option<Notice> {
    if settings.t_min.is_some() || !finest.is_finite() {
        return None;
    }
    let blur = blur(finest / spread) * spread;
    // Three digits are enough, and people read them.
    let exact = process.time_of_noise_level(blur)?;
    let t_min: f64 = format!("{exact:.2e}").parse().unwrap_or(exact);
    settings.t_min = Some(t_min);
    Some(Notice::SmallestTime {
        t_min,
        blur,
        finest,
    })
}

/// The grid of the settings, their defaults filled in.
pub fn grid(settings: &mut Settings, process: &Process, finest: f64) -> Result<TimeGrid> {
    let (s, usual) = (settings, TimeGrid::default_for(process));
    let levels = *s.grid_levels.get_or_insert(usual.levels());
    let t_min = *s.t_min.get_or_insert(usual.t_min());
    let t_max = *s.t_max.get_or_insert(usual.t_max());
    let spacing = s.spacing.get_or_insert_with(|| {
        let range = (levels, t_min, t_max);
        Named(overlapping(process, range, finest, usual.spacing()))
    });
    Ok(TimeGrid::new(levels, t_min, t_max, spacing.0)?)
}

/// The blur at the smallest time, for data whose finest structure has this width: a Gaussian of that width loses half a percent of a
/// nat by it.
fn blur(finest: f64) -> f64 {
    (0.1 * finest).clamp(1e-4, 0.05)
}

/// The spacing of a grid whose first levels overlap on structures of this width: the second level's noise must not drown them.
fn overlapping(
    process: &Process,
    (levels, t_min, t_max): (usize, f64, f64),
    finest: f64,
    usual: Spacing,
) -> Spacing {
    let noise = |spacing| {
        let grid = TimeGrid::new(levels, t_min, t_max, spacing).ok()?;
        Some(process.noise_level(grid.times()[1]))
    };
    if process.is_interpolant() || noise(usual).is_none_or(|noise| noise <= 0.5 * finest) {
        return usual;
    }
    [2.0, 3.0, 5.0, 7.0]
        .map(|rho| Spacing::Power { rho })
        .into_iter()
        .find(|spacing| noise(*spacing).is_some_and(|noise| noise <= 0.5 * finest))
        .unwrap_or(Spacing::Power { rho: 7.0 })
}
