//! Langevin dynamics of copies of a molecule by the BAOAB splitting (Leimkuhler and Matthews 2013), each copy at its own temperature.

use super::force_field::{COPIES, Copies, ForceField, TERMS};
use super::lanes::Lanes;
use super::solvent::Solvent;
use crate::engine::Isa;
use crate::engine::kernel::dispatch::{Loop, dispatch};
use crate::rng::{Purpose, Stream, fill_normal_rows};
use crate::sample::mcmc::{baoab, langevin::thermostat};

/// Whom to cite.
pub(crate) const CITES: crate::citation::Cites = baoab::CITES;

/// What all copies share.
pub(super) struct Integrator {
    isa: Isa,
    seed: u64,
    /// Half a time step, ps.
    half: f64,
    /// See [`thermostat`].
    keep: f64,
    fresh: f64,
    /// One over the mass of each atom, and its root.
    inverse: Vec<[f64; 2]>,
}

impl Integrator {
    pub(super) fn new(isa: Isa, seed: u64, masses: &[f64], step: f64, friction: f64) -> Self {
        let (keep, fresh) = thermostat(friction, step);
        let inverse = masses.iter().map(|m| [1.0 / m, (1.0 / m).sqrt()]).collect();
        Integrator {
            isa,
            seed,
            half: 0.5 * step,
            keep,
            fresh,
            inverse,
        }
    }

    /// Velocities (nm/ps) from their equilibrium at energy `kt` (kJ/mol), for replica `replica`.
    pub(super) fn velocities(&self, replica: usize, kt: f64) -> Vec<f64> {
        let mut stream = Stream::new(self.seed, Purpose::Velocity, 0, replica as u64);
        let roots = self.inverse.iter().flat_map(|[_, root]| [*root; 3]);
        roots
            .map(|root| kt.sqrt() * root * stream.normal())
            .collect()
    }
}

/// Neighbouring copies, moved together.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub copies: Copies<COPIES>,
    velocities: Vec<Lanes<COPIES>>,
    noise: Vec<f32>,
    /// Root of kT of each copy.
    thermal: Lanes<COPIES>,
    /// Number of the first replica.
    first: usize,
}

impl Block {
    pub(super) fn new(field: &ForceField, first: usize) -> Self {
        let dim = 3 * field.atoms();
        Block {
            copies: Copies::new(field),
            velocities: vec![Lanes::ZERO; dim],
            noise: vec![0.0; COPIES * dim.next_multiple_of(4)],
            thermal: Lanes::ZERO,
            first,
        }
    }

    pub(super) fn place(&mut self, lane: usize, positions: &[f64], velocities: &[f64]) {
        self.copies.place(lane, positions);
        for (to, from) in self.velocities.iter_mut().zip(velocities) {
            to.0[lane] = *from;
        }
    }

    /// The copy in a lane is now at energy `kt` in `solvent`.
    pub(super) fn hold(&mut self, lane: usize, kt: f64, solvent: Solvent) {
        self.thermal.0[lane] = kt.sqrt();
        self.copies.solvate(lane, solvent);
    }

    /// Multiplies the velocities of a lane.
    pub(super) fn rescale(&mut self, lane: usize, factor: f64) {
        for velocity in &mut self.velocities {
            velocity.0[lane] *= factor;
        }
    }

    /// Numbers that [`Block::pack`] writes.
    pub(super) fn size(&self) -> usize {
        COPIES * (2 * self.velocities.len() + TERMS)
    }

    /// What the next moves depend on, and the energies, for other processes.
    pub(super) fn pack(&self, out: &mut [f64]) {
        let lanes = self.copies.positions.iter().chain(&self.velocities);
        let lanes = lanes.chain(self.copies.term_lanes());
        for (out, lanes) in out.chunks_exact_mut(COPIES).zip(lanes) {
            out.copy_from_slice(&lanes.0);
        }
    }

    /// Takes what another process has packed.
    pub(super) fn unpack(&mut self, from: &[f64]) {
        let (positions, terms) = self.copies.moved();
        let lanes = positions.iter_mut().chain(&mut self.velocities);
        for (lanes, from) in lanes.chain(terms).zip(from.chunks_exact(COPIES)) {
            lanes.0.copy_from_slice(from);
        }
    }

    pub(super) fn velocities(&self, lane: usize) -> impl Iterator<Item = f64> + '_ {
        self.velocities.iter().map(move |v| v.0[lane])
    }

    /// `steps` steps, the first of which is number `from`: B (half a kick), A (half a drift), O (friction and noise), A, B.
    pub(super) fn advance(
        &mut self,
        field: &ForceField,
        integrator: &Integrator,
        from: u64,
        steps: u64,
    ) {
        let isa = integrator.isa;
        self.copies.evaluate(isa, field);
        let width = self.noise.len() / COPIES;
        for step in from..from + steps {
            let first = self.first as u64;
            fill_normal_rows(
                integrator.seed,
                Purpose::Langevin,
                step,
                first,
                width,
                &mut self.noise,
            );
            dispatch(
                isa,
                KickAndDrift {
                    block: self,
                    integrator,
                },
            );
            self.copies.evaluate(isa, field);
            dispatch(
                isa,
                Kick {
                    block: self,
                    integrator,
                },
            );
        }
    }
}

struct KickAndDrift<'a> {
    block: &'a mut Block,
    integrator: &'a Integrator,
}

impl Loop for KickAndDrift<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Block {
            copies,
            velocities,
            noise,
            thermal,
            ..
        } = self.block;
        let Integrator {
            half,
            keep,
            fresh,
            inverse,
            ..
        } = self.integrator;
        let width = noise.len() / COPIES;
        let coordinates = copies
            .positions
            .iter_mut()
            .zip(&copies.forces)
            .zip(velocities);
        for (k, ((x, force), velocity)) in coordinates.enumerate() {
            let [inverse, root] = inverse[k / 3];
            let mut z = [0.0; COPIES];
            for lane in 0..COPIES {
                z[lane] = f64::from(noise[lane * width + k]);
            }
            let mut v = *velocity + *force * (half * inverse);
            *x += v * *half;
            v = v * *keep + *thermal * Lanes(z) * (fresh * root);
            *x += v * *half;
            *velocity = v;
        }
    }
}

struct Kick<'a> {
    block: &'a mut Block,
    integrator: &'a Integrator,
}

impl Loop for Kick<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Integrator { half, inverse, .. } = self.integrator;
        let forces = &self.block.copies.forces;
        for (k, (velocity, force)) in self.block.velocities.iter_mut().zip(forces).enumerate() {
            *velocity += *force * (half * inverse[k / 3][0]);
        }
    }
}
