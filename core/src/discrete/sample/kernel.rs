//! Kernels that leave the law of one level alone: Gibbs, which draws each site given the others, and Metropolis, which proposes another
//! symbol for each.

use crate::discrete::Space;
use crate::discrete::energy::Energy;
use crate::discrete::system::draw_from;
use crate::rng::Stream;

/// Which kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Each site from its conditional.
    Gibbs,
    /// Another symbol for each site, taken by the ratio.
    Metropolis,
}

impl Kernel {
    /// One sweep over all sites of all rows; each row draws from its own stream.
    pub fn sweep(self, energy: &dyn Energy, time: f64, rows: &mut [u8], streams: &mut [Stream]) {
        match self {
            Kernel::Gibbs => gibbs_sweep(energy, time, rows, streams),
            Kernel::Metropolis => metropolis_sweep(energy, time, rows, streams),
        }
    }
}

/// Sites in order, each drawn from `p(y_i | the others)` of all rows at once.
pub fn gibbs_sweep(energy: &dyn Energy, time: f64, rows: &mut [u8], streams: &mut [Stream]) {
    let Space { sites, states } = energy.space();
    let symbols = energy.process().symbols(states);
    let count = rows.len() / sites;
    let mut asked = vec![0; count * symbols * sites];
    let mut energies = vec![0.0; count * symbols];
    let mut weights = vec![0.0; symbols];
    for site in 0..sites {
        for (k, row) in asked.chunks_exact_mut(sites).enumerate() {
            row.copy_from_slice(&rows[k / symbols * sites..][..sites]);
            row[site] = (k % symbols) as u8;
        }
        energy.energy(time, &asked, &mut energies);
        for ((row, energies), stream) in rows
            .chunks_exact_mut(sites)
            .zip(energies.chunks_exact(symbols))
            .zip(&mut *streams)
        {
            let least = energies.iter().copied().fold(f64::INFINITY, f64::min);
            for (weight, energy) in weights.iter_mut().zip(energies) {
                *weight = (least - energy).exp();
            }
            row[site] = draw_from(&weights, weights.iter().sum(), stream) as u8;
        }
    }
}

/// Sites in order, another symbol proposed for each, all equally likely.
pub fn metropolis_sweep(energy: &dyn Energy, time: f64, rows: &mut [u8], streams: &mut [Stream]) {
    let Space { sites, states } = energy.space();
    let symbols = energy.process().symbols(states);
    let count = rows.len() / sites;
    let (mut now, mut then) = (vec![0.0; count], vec![0.0; count]);
    energy.energy(time, rows, &mut now);
    let mut proposed = rows.to_vec();
    for site in 0..sites {
        for (row, stream) in proposed.chunks_exact_mut(sites).zip(&mut *streams) {
            let other = stream.below(symbols as u64 - 1) as u8;
            row[site] = other + u8::from(other >= row[site]);
        }
        energy.energy(time, &proposed, &mut then);
        let pairs = rows
            .chunks_exact_mut(sites)
            .zip(proposed.chunks_exact_mut(sites));
        for (k, ((row, proposed), stream)) in pairs.zip(&mut *streams).enumerate() {
            if stream.uniform().ln() < now[k] - then[k] {
                row[site] = proposed[site];
                now[k] = then[k];
            } else {
                proposed[site] = row[site];
            }
        }
    }
}
