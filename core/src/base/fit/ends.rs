//! Mixtures for both ends of an interpolant, diagonal in one basis: their sums of covariances then stay diagonal at every time.

use super::{Fit, FitSettings, Rows, Shape, data::Data, fit};
use crate::engine::{Isa, Pool};
use crate::system::matrix::{add, symmetric_eigen};
use crate::{Error, Result};

/// Most components of each end: a point between the ends pays for all pairs.
pub const MOST_PER_END: usize = 16;

/// Both ends.
#[derive(Clone, Debug)]
pub struct FitEnds {
    /// The law of X_0.
    pub start: Fit,
    /// The law of X_1.
    pub end: Fit,
}

/// Fits both ends with diagonal covariances, once in the coordinates and once in the principal axes of both together, and keeps
/// the axes in which held-out rows of both ends are more likely.
pub fn fit_ends(
    start: &dyn Rows,
    end: &dyn Rows,
    settings: &FitSettings,
    pool: &Pool,
    isa: Isa,
) -> Result<FitEnds> {
    if start.dim() != end.dim() {
        return Err(Error::Shape {
            what: "second end of the base".into(),
            found: format!("{} columns", end.dim()),
            expected: format!("{}, as the first", start.dim()),
        });
    }
    let both = |basis: Option<Vec<f64>>| -> Result<FitEnds> {
        let settings = FitSettings {
            shapes: vec![Shape::Diagonal],
            most_components: settings.most_components.min(MOST_PER_END),
            basis,
            ..settings.clone()
        };
        Ok(FitEnds {
            start: fit(start, &settings, pool, isa)?,
            end: fit(end, &settings, pool, isa)?,
        })
    };
    let plain = both(None)?;
    if start.dim() == 1 {
        return Ok(plain);
    }
    let turned = both(Some(common_axes([start, end], settings)?))?;
    let nats = |ends: &FitEnds| ends.start.chosen.held_out + ends.end.chosen.held_out;
    Ok(if nats(&turned) > nats(&plain) {
        turned
    } else {
        plain
    })
}

/// The principal axes of the covariances of both ends, averaged, without their outermost rows.
fn common_axes(ends: [&dyn Rows; 2], settings: &FitSettings) -> Result<Vec<f64>> {
    let dim = ends[0].dim();
    let mut matrix = vec![0.0; dim * dim];
    let settings = FitSettings {
        basis: None,
        ..settings.clone()
    };
    for rows in ends {
        let data = Data::new(rows, &settings)?;
        for row in data.rows.chunks_exact(dim) {
            let row: Vec<f64> = row
                .iter()
                .zip(&data.scale)
                .map(|(z, scale)| scale * z.clamp(-4.0, 4.0))
                .collect();
            for i in 0..dim {
                add(
                    row[i] / data.len() as f64,
                    &row,
                    &mut matrix[i * dim..][..dim],
                );
            }
        }
    }
    Ok(symmetric_eigen(&matrix, dim).1)
}
