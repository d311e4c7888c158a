//! Data with edges, recognised and served: where a plane or space needs all the Gaussians there are, and a kernel density makes new rows more likely than they
//! do, no mixture is its shape. The energy then stands on one Gaussian, and its network sees waves of the columns.
//!
//! A mixture with many narrow components leaves the network their unevenness to undo, which it does not learn; measured in
//! docs/density.md on a checkerboard.

use crate::base::BaseKind;
use crate::named::Named;
use crate::network::NetworkChoice;
use crate::notice::Notice;
use crate::resolve::Facts;
use crate::settings::Settings;
use diffclf::base::MixtureBase;

/// Columns up to which waves are enough to cover them.
const MOST_COLUMNS: usize = 3;
/// Components from which on the number is that of a shape which is no mixture.
const MANY_COMPONENTS: usize = 48;
/// Rows from which on edges are known well enough to be learned.
const FEWEST_ROWS: usize = 5000;

/// Rows per step and steps of the score: as on a mixture, since the anchor holds the density.
const BATCH: usize = 512;
const SCORE_STEPS: u64 = 1000;

/// Whether it is worth asking a kernel density for edges. On a circle no kernel density is at hand, and the mixture stays: the dihedrals of alanine
/// dipeptide need as many Gaussians and are a mixture all the same (docs/density.md).
pub fn likely(mixture: &MixtureBase, rows: usize, periods: &[f64]) -> bool {
    mixture.dim() <= MOST_COLUMNS
        && mixture.components() >= MANY_COMPONENTS
        && rows >= FEWEST_ROWS * 9 / 10
        && periods.iter().all(|period| *period == 0.0)
}

/// Whether the data have edges, and the settings leave it to the program what to do about them.
pub fn recognised(settings: &Settings, facts: &Facts) -> Option<Notice> {
    let free = matches!(settings.base, None | Some(BaseKind::Auto))
        && settings.network.is_none()
        && settings.objective.is_none()
        && settings.particles.is_none()
        && !facts.has_end;
    let base = facts.base.as_ref()?;
    let components = base.ends.start.components();
    let edges = facts.rows? >= FEWEST_ROWS && base.kernels_ahead.is_some_and(|ahead| ahead > 0.0);
    (free && facts.given && edges).then_some(Notice::Edges { components })
}

/// Fills in what serves them.
pub fn serve(settings: &mut Settings) {
    settings.base = Some(BaseKind::Gaussian);
    settings.network = Some(Named(NetworkChoice::Waves { waves: None }));
    settings.objective = Some("dsm+diffclf+0.5*anchor".into());
    settings.batch.get_or_insert(BATCH);
    settings.score_steps.get_or_insert(SCORE_STEPS);
}
