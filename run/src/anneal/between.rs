//! From rows of one endpoint of an interpolant to the other, where the energies of both are known: a Boltzmann generator between two states.

use super::{Annealed, Annealing, Levels, angular_times};
use crate::bridge::{Endpoint, file_rows, too_few_rows};
use crate::error::{Error, Result};
use crate::watch::{Done, Watch};
use crate::words;
use crate::words::Setting;
use diffclf::energy::{Energy, LearnedEnergy, OfPoints};
use diffclf::model::Content;
use diffclf::sample::{Boltzmann, Start};

impl Annealing {
    /// Carries rows of one endpoint along the model's levels to the other. `known` is an energy of rows that tells `U_A` at time 0 and `U_B` at the
    /// last time; it takes the place of the model there, so that `log Z` is `log(Z_B/Z_A)` (or its negative, towards the start), whatever the
    /// model is worth, if the rows are draws of their state. Particles are weighted from level to level and moved by MCMC alone: no velocity is needed.
    pub fn run_between(
        &self,
        known: &dyn Energy,
        (content, learned): (&Content, &LearnedEnergy),
        watch: &dyn Watch,
    ) -> Result<Done<Annealed>> {
        let (spec, columns) = (&content.spec, content.columns());
        if !spec.process.is_interpolant() {
            return Err(Error::Usage(format!(
                "the model has the {} process of one data set; energies of two endpoints belong to an interpolant",
                spec.process.name()
            )));
        }
        if known.dim() != columns {
            return Err(Error::setting(
                "molecule",
                format!("an energy of {} columns", known.dim()),
                format!("one of {columns}, those of the model"),
            ));
        }
        let smc = self.checked_smc(content)?;
        self.refuse_for_interpolants(&smc)?;
        self.bridge.refuse_velocity()?;
        let Some(path) = &self.bridge.rows else {
            return Err(Error::Refused(words!(
                "particles start from draws of one endpoint; give rows of it with ",
                Setting::to("rows", "FILE.npy")
            )));
        };
        let towards = self.bridge.towards();
        let (from, to) = towards.ends(&spec.process);
        let count = self.levels_of(content)?;
        let (first, last) = match towards {
            Endpoint::Start => (spec.grid.t_max(), spec.grid.t_min()),
            Endpoint::End => (spec.grid.t_min(), spec.grid.t_max()),
        };
        let mut times = angular_times(first, last, count);
        times.push(to);

        let (rows, n) = (file_rows(content, path)?, self.particles);
        let there = rows.len() / columns;
        if n > there {
            return Err(too_few_rows(path, n, there));
        }
        // Neighbours in a file of frames are alike: rows from all over it.
        let chosen = (0..n).flat_map(|k| &rows[k * there / n * columns..][..columns]);
        let points = content.rows_inward(chosen.copied().collect());

        let energy = content.in_data_coordinates(learned);
        let inside = content.view().map(|view| OfPoints { inner: known, view });
        let known = inside
            .as_ref()
            .map_or(known, |inside| inside as &dyn Energy);
        let generator = Boltzmann {
            path: &energy,
            target: known,
            times: &times,
            start: Start::Draws {
                points: &points,
                density: known,
                time: from,
            },
            transport: None,
        };
        let mut levels = Levels::new("anneal", &times, &smc, watch);
        let mut particles = generator.run(&smc, n, &mut |level| levels.see(level))?;
        particles.points = content.rows_outward(std::mem::take(&mut particles.points));
        Ok(levels.done(Annealed::Crossing {
            particles: Box::new(particles),
            names: towards.names(content),
            g: None,
            smc,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;
    use crate::anneal::AnnealMethod;
    use crate::bridge::{BridgeChoice, VelocityOrigin};
    use crate::files::{read_model, write_atomic};
    use crate::train::{Job, train};
    use diffclf::energy::Closure;
    use diffclf::engine::{Isa, Pool};
    use diffclf::format::npy::write_npy;
    use diffclf::model::Model;
    use diffclf::rng::{Purpose, Stream};
    use diffclf::sample::{Particles, Smc};
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    /// Means and spreads of the two states.
    const STATES: [([f64; 2], [f64; 2]); 2] = [([1.0, -0.5], [0.7, 1.3]), ([0.2, 0.9], [1.1, 0.5])];

    /// Energies without their normalisers: `log(Z_B/Z_A)` is the logarithm of the ratio of the spreads' products.
    fn known() -> impl Energy {
        Closure::new(2, |time, y: &[f64], score: &mut [f64]| {
            let (mean, spread) = STATES[usize::from(time > 0.5)];
            let mut energy = 0.0;
            for k in 0..2 {
                let x = (y[k] - mean[k]) / spread[k];
                (energy, score[k]) = (energy + 0.5 * x * x, -x / spread[k]);
            }
            energy
        })
    }

    fn rows(place: &Path, state: usize) {
        let (mean, spread) = STATES[state];
        let values: Vec<f64> = (0..4000)
            .flat_map(|row| {
                let mut stream = Stream::new(5, Purpose::Data, state as u64, row);
                [0, 1].map(|k| mean[k] + spread[k] * stream.normal())
            })
            .collect();
        write_atomic(&place.join(["a.npy", "b.npy"][state]), |writer| {
            write_npy(&[4000, 2], &values, writer)
        })
        .unwrap();
    }

    /// A model that has hardly learned anything: its levels are one round Gaussian about all rows.
    fn poor_model(place: &Path) -> Model {
        let settings = format!(
            "data = '{0}/a.npy'\nend = '{0}/b.npy'\nobjective = 'dsm'\nform = 'residual-squared-norm'\nsteps = 2\nbatch = 16\nwidth = 4\ndepth = 1\n\
             features = 4\ngrid_levels = 8\nheld_out = 0.0\nbase = 'gaussian'",
            place.display()
        );
        let path = place.join("run");
        train(Job {
            settings: toml::from_str(&settings).unwrap(),
            path: path.clone(),
            first_stage: None,
            from: None,
            time: None,
            resume: false,
            force: false,
            checkpoint_every: Duration::from_secs(10),
            watch: Arc::new(Silent),
            pool: Arc::new(Pool::new(1)),
        })
        .unwrap();
        read_model(&path).unwrap()
    }

    fn asked(place: &Path, towards: Endpoint) -> Annealing {
        let from = match towards {
            Endpoint::Start => "b.npy",
            Endpoint::End => "a.npy",
        };
        Annealing {
            method: AnnealMethod::Smc,
            target: None,
            system_seed: 0,
            diffusion: false,
            contest: false,
            weights: true,
            bridge: BridgeChoice {
                towards: Some(towards),
                rows: Some(place.join(from)),
                ..BridgeChoice::default()
            },
            sweeps: 0,
            particles: 2000,
            levels: Some(6),
            smc: Smc {
                moves: 4,
                runs: 8,
                seed: 3,
                ..Smc::default()
            },
        }
    }

    #[test]
    fn a_poor_path_still_leads_to_the_right_ratio() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        (0..2).for_each(|state| rows(place, state));
        let model = poor_model(place);
        let content = &model.content;
        let learned = model.energy(Arc::new(Pool::new(1)), Isa::detect()).unwrap();
        let run = |asked: &Annealing| -> Result<Box<Particles>> {
            let done = asked.run_between(&known(), (content, &learned), &Silent)?;
            match done.finish("done") {
                Annealed::Crossing { particles, .. } => Ok(particles),
                _ => unreachable!(),
            }
        };
        let exact = (1.1f64 * 0.5 / (0.7 * 1.3)).ln();
        for (towards, sign) in [(Endpoint::End, 1.0), (Endpoint::Start, -1.0)] {
            let found = run(&asked(place, towards)).unwrap();
            let error = found.log_z.error.unwrap();
            assert!(
                (found.log_z.value - sign * exact).abs() < 4.0 * error && error < 0.1,
                "{} {exact}",
                found.log_z
            );
            let (mean, spread) = STATES[usize::from(towards == Endpoint::End)];
            let points = found.points.chunks_exact(2).zip(&found.weights);
            let first: f64 = points.map(|(y, weight)| weight * y[0]).sum();
            // Resampled particles are not independent: the effective sample size is that of the last weights alone, so half of it.
            let allowed = 4.0 * spread[0] / (0.5 * found.ess() * 2000.0).sqrt();
            assert!((first - mean[0]).abs() < allowed, "{first} {allowed}");
        }
        let refused = |change: &dyn Fn(&mut Annealing)| {
            let mut asked = asked(place, Endpoint::End);
            change(&mut asked);
            run(&asked).err().unwrap().to_string()
        };
        assert!(refused(&|asked| asked.bridge.rows = None).contains("rows"));
        assert!(refused(&|asked| asked.particles = 5000).contains("4000"));
        assert!(refused(&|asked| asked.levels = Some(1)).contains("at least 2"));
        assert!(refused(&|asked| asked.diffusion = true).contains("smc or ais"));
        let velocity =
            |asked: &mut Annealing| asked.bridge.velocity = Some(VelocityOrigin::Learned);
        assert!(refused(&velocity).contains("MCMC alone"));
        // One energy for one end is not what an interpolant has.
        let one = asked(place, Endpoint::End);
        let found = one.run_to(Some(&known()), (content, &learned), &Silent);
        assert!(found.err().unwrap().to_string().contains("two data sets"));
        let other = Closure::new(3, |_, _: &[f64], _: &mut [f64]| 0.0);
        let found = one.run_between(&other, (content, &learned), &Silent);
        assert!(found.err().unwrap().to_string().contains("3 columns"));
    }
}
