//! Energies of states: `log p_t(y) = -U(t, y) + F(t)`, and the ratios of states that differ at one site.

mod composition;
mod learned;
mod nodes;

pub use composition::Composition;
pub use learned::LearnedStates;
pub(crate) use learned::fill_one_hot;
pub(crate) use nodes::{Nodes, coupling, features_of};

use super::{Process, Space};

/// A log-density of rows at every noise level. A row has one byte for each site.
pub trait Energy: Send + Sync {
    /// Sites, and states of the data.
    fn space(&self) -> Space;

    /// The noise.
    fn process(&self) -> &Process;

    /// F(t).
    fn free_energy(&self, time: f64) -> f64;

    /// U(t, y) of each row.
    fn energy(&self, time: f64, rows: &[u8], out: &mut [f64]);

    /// `log p_t(y)` of each row.
    fn log_density(&self, time: f64, rows: &[u8], out: &mut [f64]) {
        self.energy(time, rows, out);
        let free_energy = self.free_energy(time);
        out.iter_mut()
            .for_each(|value| *value = free_energy - *value);
    }

    /// `log p_t(y') - log p_t(y)` with `y'` the row whose site i shows symbol s: rows x sites x symbols, zero for the row itself. It is
    /// the logarithm of the concrete score.
    fn log_ratios(&self, time: f64, rows: &[u8], out: &mut [f64]) {
        let Space { sites, states } = self.space();
        let symbols = self.process().symbols(states);
        let mut changed = vec![0; sites * symbols * sites];
        let mut own = [0.0];
        for (row, out) in rows
            .chunks_exact(sites)
            .zip(out.chunks_exact_mut(sites * symbols))
        {
            for (k, change) in changed.chunks_exact_mut(sites).enumerate() {
                change.copy_from_slice(row);
                change[k / symbols] = (k % symbols) as u8;
            }
            self.energy(time, row, &mut own);
            self.energy(time, &changed, out);
            out.iter_mut().for_each(|value| *value = own[0] - *value);
        }
    }

    /// `log p_{t_j}(y_i)`: a row of as many numbers as times for each row.
    fn log_density_grid(&self, times: &[f64], rows: &[u8], out: &mut [f64]) {
        let mut column = vec![0.0; out.len() / times.len().max(1)];
        for (j, &time) in times.iter().enumerate() {
            self.log_density(time, rows, &mut column);
            for (row, value) in out.chunks_exact_mut(times.len()).zip(&column) {
                row[j] = *value;
            }
        }
    }
}

/// `d/dt log p_t(y)` by the master equation, `sum_y' Q_t(y', y) p_t(y') / p_t(y) + Q_t(y, y)`, of each row.
pub fn time_scores(energy: &dyn Energy, time: f64, rows: &[u8], out: &mut [f64]) {
    let Space { sites, states } = energy.space();
    let process = energy.process();
    let symbols = process.symbols(states);
    let mut ratios = vec![0.0; rows.len() * symbols];
    energy.log_ratios(time, rows, &mut ratios);
    let rows = rows
        .chunks_exact(sites)
        .zip(ratios.chunks_exact(sites * symbols));
    for ((row, ratios), out) in rows.zip(out) {
        *out = 0.0;
        for (&now, ratios) in row.iter().zip(ratios.chunks_exact(symbols)) {
            for (s, ratio) in ratios.iter().enumerate() {
                let s = s as u8;
                if s != now {
                    let into = process.jump_rate(states, time, s, now);
                    // A state that cannot be has no flow, whatever its ratio.
                    if into > 0.0 {
                        *out += into * ratio.exp();
                    }
                    *out -= process.jump_rate(states, time, now, s);
                }
            }
        }
    }
}
