//! `Prepared`: rows in the model's coordinates, as sources of training and held-out rows and as they stand in the file.

use crate::error::Result;
use crate::resolve::held_out_rows;
use crate::values::Values;
use diffclf::coupling::Coupling;
use diffclf::energy::{Coordinates, ModelSpec};
use diffclf::rng::{Part, Purpose};
use diffclf::system::System;
use diffclf::train::{Resampled, Shuffled, Source, Table, Turned, coupled};
use diffclf::weights::kept;
use std::sync::Arc;

/// An endpoint's rows in the model's coordinates.
#[derive(Clone)]
pub enum Prepared {
    /// A table to shuffle.
    Fixed(Arc<Values>, Coordinates),
    /// A system to draw from at every step.
    Fresh(Arc<System>, Coordinates),
}

/// Sources of one endpoint.
#[derive(Clone)]
pub struct Feed {
    /// Rows to train on.
    pub train: Arc<dyn Source>,
    /// Rows never trained on, and how many there are.
    pub held_out: Option<(Arc<dyn Source>, usize)>,
}

impl Feed {
    /// Both endpoints with rows that belong together, for steps of `batch` rows; theirs deal as many as the coupling has.
    pub fn coupled(
        coupling: &Coupling,
        spec: &ModelSpec,
        ends: [&Self; 2],
        batch: usize,
    ) -> [Self; 2] {
        let [start, end] = ends;
        let both = |a: &Arc<dyn Source>, b: &Arc<dyn Source>| {
            coupled(coupling, spec.shape(), [a.clone(), b.clone()], batch)
        };
        let train = both(&start.train, &end.train);
        let held_out = match (&start.held_out, &end.held_out) {
            (Some((a, rows)), Some((b, others))) => {
                let sources = both(a, b);
                sources.map(|source| Some((source, *rows.min(others))))
            }
            _ => [None, None],
        };
        let ([a, b], [c, d]) = (train, held_out);
        [(a, c), (b, d)].map(|(train, held_out)| Self { train, held_out })
    }

    /// The same rows, each turned at random.
    pub fn turned(self, spec: &ModelSpec, seed: u64) -> Result<Self> {
        let particles = spec.network.particles().unwrap_or(1);
        let points = if spec.without_centre {
            particles.saturating_sub(1)
        } else {
            particles
        };
        let space = spec.dim / points.max(1);
        let turned = |rows, part| -> Result<Arc<dyn Source>> {
            let about_centre = !spec.without_centre;
            Ok(Arc::new(Turned::new(
                rows,
                seed,
                part,
                space,
                about_centre,
            )?))
        };
        Ok(Self {
            train: turned(self.train, Part::Training)?,
            held_out: match self.held_out {
                Some((rows, count)) => Some((turned(rows, Part::HeldOut)?, count)),
                None => None,
            },
        })
    }
}

impl Prepared {
    /// Rows that are trained on and rows that are held out (of weighted ones those that stand for them with equal weights), up to `most` of each, spread over the table and in its order (which is that of time in a
    /// series); none where rows are drawn afresh. Numbers are rounded as in training.
    pub fn shares(
        &self,
        (endpoint, seed): (usize, u64),
        held_out: f64,
        most: usize,
    ) -> Option<[Vec<f64>; 2]> {
        let dim = match self {
            Self::Fixed(_, coordinates) | Self::Fresh(_, coordinates) => coordinates.dim(),
        };
        let [train, rest] = self.in_order(endpoint, seed, held_out)?;
        let kept = |share: &Shuffled| -> Vec<usize> {
            if !share.is_weighted() {
                return (0..share.rows()).collect();
            }
            let weights: Vec<f64> = (0..share.rows()).map(|k| share.weight(k)).collect();
            kept(&weights, seed, Purpose::Keep(endpoint as u32))
        };
        // Of too many, as many blocks as each has rows, equally far apart: their correlation can still be measured.
        let read = |share: &Shuffled| -> Vec<f64> {
            let places = kept(share);
            let rows = places.len();
            let (block, apart) = if rows > most {
                let block = most.isqrt();
                (block, rows as f64 * block as f64 / most as f64)
            } else {
                (rows.max(1), 0.0)
            };
            let mut row = vec![0f32; dim];
            let mut values = Vec::with_capacity(rows.min(most) * dim);
            for k in 0..rows.min(most) {
                let first = (apart * (k / block) as f64) as usize;
                let place = (first + k % block).min(rows - 1);
                share.copy_in_order(places[place], &mut row);
                values.extend(row.iter().map(|x| f64::from(*x)));
            }
            values
        };
        Some([read(&train), read(&rest)])
    }

    /// Training and held-out rows of an endpoint.
    pub fn feed(&self, endpoint: usize, batch: usize, seed: u64, held_out: f64) -> Feed {
        let endpoint = endpoint as u32;
        match self {
            Self::Fresh(system, coordinates) => Feed {
                train: Arc::new(Resampled::new(
                    endpoint,
                    system.clone(),
                    seed,
                    coordinates.clone(),
                )),
                held_out: None,
            },
            Self::Fixed(table, coordinates) => {
                let held_out = held_out_rows(table.rows(), held_out);
                let (train, rest) =
                    Shuffled::split(endpoint, table.clone(), coordinates, batch, seed, held_out);
                Feed {
                    train: Arc::new(train),
                    held_out: (held_out > 0).then(|| (Arc::new(rest) as Arc<dyn Source>, held_out)),
                }
            }
        }
    }

    /// The same rows as they stand in the file, trained on and held out; none where every row is drawn afresh.
    pub fn in_order(&self, endpoint: usize, seed: u64, held_out: f64) -> Option<[Shuffled; 2]> {
        let Self::Fixed(table, coordinates) = self else {
            return None;
        };
        let held_out = held_out_rows(table.rows(), held_out);
        let (train, rest) = Shuffled::split(
            endpoint as u32,
            table.clone(),
            coordinates,
            1,
            seed,
            held_out,
        );
        Some([train, rest])
    }
}
