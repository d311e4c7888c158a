//! Rademacher probes: vectors of random signs, by which traces are estimated (Hutchinson 1989).

use super::fill::{Fill, Filler, Setup, Tile};
use crate::energy::ModelSpec;
use crate::engine::Real;
use crate::rng::{Part, Purpose, Stream};

/// Probe number 0 or 1 of every noisy point; both are independent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Probe(pub(super) usize);

impl Filler for Probe {
    fn shapes(&self, spec: &ModelSpec, levels: usize) -> Vec<(usize, usize)> {
        vec![(levels, spec.dim)]
    }

    fn build<T: Real>(&self, _: &Setup<'_>, slots: &[usize]) -> Box<dyn Fill<T>> {
        Box::new(Signs {
            number: self.0,
            slot: slots[0],
        })
    }
}

struct Signs {
    number: usize,
    slot: usize,
}

impl<T: Real> Fill<T> for Signs {
    fn fill(&self, tile: &mut Tile<'_, '_, T>) {
        let width = tile.levels * tile.spec.dim;
        let out = tile.inputs.numbers(self.slot);
        for (unit, out) in tile.units.clone().zip(out.chunks_mut(width)) {
            fill_signs((tile.seed, tile.part, tile.step), unit, self.number, out);
        }
    }
}

/// Signs of probe `number` for the row `unit` of a step.
pub(crate) fn fill_signs<T: Real>(
    (seed, part, step): (u64, Part, u64),
    unit: usize,
    number: usize,
    out: &mut [T],
) {
    let row = 2 * unit as u64 + number as u64;
    let mut stream = Stream::new(seed, Purpose::Probe(part), step, row);
    for block in out.chunks_mut(32) {
        let mut bits = stream.next_u32();
        for sign in block {
            *sign = if bits & 1 == 1 { T::ONE } else { -T::ONE };
            bits >>= 1;
        }
    }
}
