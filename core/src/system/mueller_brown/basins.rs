//! The three basins of the Mueller-Brown surface: where steepest descent ends, their minima, weights and the passes between them.

use super::{BOX, MuellerBrown, spacing};

/// Cells of the map of basins along an axis.
const CELLS: usize = 512;
/// Points of a cell along an axis for its mass.
const FINE: usize = 2;

/// A well.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Basin {
    /// What people call it.
    pub name: &'static str,
    /// Its lowest point.
    pub minimum: [f64; 2],
    /// V there.
    pub energy: f64,
    /// Its share of all mass.
    pub weight: f64,
}

/// The plane divided among the wells, cell by cell: a cell belongs to the well that steepest descent from its centre ends in.
#[derive(Debug, Clone, PartialEq)]
pub struct Basins {
    wells: [Basin; 3],
    /// Lowest passes: between the upper and the middle well, and between the middle and the lower one.
    passes: [([f64; 2], f64); 2],
    owner: Vec<u8>,
}

/// Near which the wells lie: upper left, middle, lower right.
const STARTS: [(&str, [f64; 2]); 3] = [
    ("upper left", [-0.558, 1.442]),
    ("middle", [-0.05, 0.467]),
    ("lower right", [0.623, 0.028]),
];
/// Near which the passes lie.
const PASSES: [[f64; 2]; 2] = [[-0.822, 0.624], [0.212, 0.293]];

impl Basins {
    /// Divides the plane; a tenth of a second.
    pub fn of(surface: &MuellerBrown) -> Self {
        let minima = STARTS.map(|(_, start)| stationary(surface, start));
        let mut owner = vec![u8::MAX; CELLS * CELLS];
        for k in 0..owner.len() {
            if owner[k] == u8::MAX {
                descend(surface, &minima, k, &mut owner);
            }
        }
        let [hx, hy] = spacing(CELLS * FINE);
        let mut weights = [0.0; 3];
        for k in 0..(CELLS * FINE).pow(2) {
            let [x, y] = super::centre(CELLS * FINE, k);
            let value = -surface.potential(x, y) / surface.temperature - surface.log_z;
            weights[usize::from(owner[cell([x, y])])] += value.exp() * hx * hy;
        }
        let wells = [0, 1, 2].map(|i| Basin {
            name: STARTS[i].0,
            minimum: minima[i],
            energy: surface.potential(minima[i][0], minima[i][1]),
            weight: weights[i],
        });
        let passes = PASSES.map(|start| {
            let at = stationary(surface, start);
            (at, surface.potential(at[0], at[1]))
        });
        Self {
            wells,
            passes,
            owner,
        }
    }

    /// The wells: upper left, middle, lower right.
    pub fn wells(&self) -> &[Basin; 3] {
        &self.wells
    }

    /// The passes and V there: between the upper and the middle well, and between the middle and the lower one.
    pub fn passes(&self) -> &[([f64; 2], f64); 2] {
        &self.passes
    }

    /// Which well a point belongs to; points outside of the map belong to the nearest cell's.
    pub fn place(&self, point: [f64; 2]) -> usize {
        usize::from(self.owner[cell(point)])
    }
}

/// The map's cell of a point.
fn cell([x, y]: [f64; 2]) -> usize {
    let [hx, hy] = spacing(CELLS);
    let index = |value: f64, low: f64, h: f64| {
        // A number that is none becomes 0.
        (((value - low) / h).floor().max(0.0) as usize).min(CELLS - 1)
    };
    index(x, BOX[0], hx) * CELLS + index(y, BOX[2], hy)
}

/// Where the force vanishes, by Newton's steps from nearby.
fn stationary(surface: &MuellerBrown, start: [f64; 2]) -> [f64; 2] {
    let mut at = start;
    for _ in 0..20 {
        let h = 1e-5;
        let force = surface.force(at[0], at[1]);
        let column = |dx: f64, dy: f64| {
            let (up, down) = (
                surface.force(at[0] + dx, at[1] + dy),
                surface.force(at[0] - dx, at[1] - dy),
            );
            [(up[0] - down[0]) / (2.0 * h), (up[1] - down[1]) / (2.0 * h)]
        };
        let (a, b) = (column(h, 0.0), column(0.0, h));
        let determinant = a[0] * b[1] - a[1] * b[0];
        at[0] -= (force[0] * b[1] - force[1] * b[0]) / determinant;
        at[1] -= (a[0] * force[1] - a[1] * force[0]) / determinant;
    }
    at
}

/// Follows the force in steps of half a cell (midpoint rule) until a minimum is near or a cell is met whose owner is known and whose
/// neighbours all have the same one; all that was passed more than a cell from a border gets its owner by its own descent, so only the
/// first cell is written.
fn descend(surface: &MuellerBrown, minima: &[[f64; 2]; 3], first: usize, owner: &mut [u8]) {
    let [hx, _] = spacing(CELLS);
    let mut at = super::centre(CELLS, first);
    let direction = |at: [f64; 2]| {
        let force = surface.force(at[0], at[1]);
        let size = force[0].hypot(force[1]).max(1e-300);
        [force[0] / size, force[1] / size]
    };
    // The box is 5.68 wide: no descent is longer than 40 of it.
    for _ in 0..80 * CELLS {
        if let Some(well) = minima
            .iter()
            .position(|m| (m[0] - at[0]).hypot(m[1] - at[1]) < 0.03)
        {
            owner[first] = well as u8;
            return;
        }
        if let Some(well) = surely(owner, cell(at)) {
            owner[first] = well;
            return;
        }
        let d = direction(at);
        let middle = [at[0] + 0.25 * hx * d[0], at[1] + 0.25 * hx * d[1]];
        let d = direction(middle);
        at = [at[0] + 0.5 * hx * d[0], at[1] + 0.5 * hx * d[1]];
    }
    // Nearest minimum: only a descent that circles a pass forever comes here.
    let distance = |m: &[f64; 2]| (m[0] - at[0]).hypot(m[1] - at[1]);
    let nearest = (0..3).min_by(|a, b| distance(&minima[*a]).total_cmp(&distance(&minima[*b])));
    owner[first] = nearest.unwrap_or(0) as u8;
}

/// The owner of a cell and its eight neighbours, if they all have the same one.
fn surely(owner: &[u8], cell: usize) -> Option<u8> {
    let (i, j) = (cell / CELLS, cell % CELLS);
    let own = owner[cell];
    if own == u8::MAX {
        return None;
    }
    for a in i.saturating_sub(1)..=(i + 1).min(CELLS - 1) {
        for b in j.saturating_sub(1)..=(j + 1).min(CELLS - 1) {
            if owner[a * CELLS + b] != own {
                return None;
            }
        }
    }
    Some(own)
}
