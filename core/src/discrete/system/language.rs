//! A small language: letters of a Markov chain, each depending on the one before it.

use super::Target;
use super::layers::Layers;
use crate::Result;
use crate::discrete::{Process, Space};
use crate::rng::{Purpose, Stream};

/// See the module's text.
#[derive(Debug, Clone, PartialEq)]
pub struct Language(Layers);

impl Language {
    /// Words of `sites` letters: probabilities of the first, and of a letter after another, `from x to`.
    pub fn new(sites: usize, first: &[f64], next: &[f64]) -> Result<Language> {
        let line = Space {
            sites: 1,
            states: first.len(),
        };
        let logs = |p: &[f64]| p.iter().map(|p| p.ln()).collect();
        Ok(Language(Layers::new(
            "language",
            line,
            sites,
            logs(first),
            logs(next),
        )?))
    }

    /// A language whose letters prefer some others, drawn from a seed.
    pub fn random(space: Space, seed: u64) -> Result<Language> {
        space.validate()?;
        let law = |row: u64| -> Vec<f64> {
            let mut stream = Stream::new(seed, Purpose::System, 0, row);
            let weights: Vec<f64> = (0..space.states)
                .map(|_| (1.5 * stream.normal()).exp())
                .collect();
            let sum: f64 = weights.iter().sum();
            weights.iter().map(|w| w / sum).collect()
        };
        let next: Vec<f64> = (1..=space.states as u64).flat_map(law).collect();
        Language::new(space.sites, &law(0), &next)
    }

    /// The chain.
    pub fn layers(&self) -> &Layers {
        &self.0
    }
}

impl Target for Language {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn space(&self) -> Space {
        self.0.space()
    }
    fn sample(&self, stream: &mut Stream, row: &mut [u8]) {
        self.0.sample(stream, row);
    }
    fn log_marginals(&self, process: &Process, keep: f64, rows: &[u8], out: &mut [f64]) {
        self.0.log_marginals(process, keep, rows, out);
    }
}
