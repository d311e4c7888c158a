//! The choice between structures: grow the number of components while held-out rows gain more than the standard error of the gain.

use super::data::Data;
use super::em::{Em, Model};
use super::seed::clusters;
use super::{COMPONENTS, Candidate, FitSettings, PURPOSE, Shape};
use crate::engine::{Isa, Pool};
use crate::rng::Stream;
use crate::system::log_sum::log_add;
use crate::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers of components without gain after which growing stops.
const PATIENCE: usize = 2;
/// Blocks of neighbouring rows from which standard errors come.
const BLOCKS: usize = 64;
/// Rows times squared dimension up to which the choice looks at all rows.
const EFFORT: usize = 40_000_000;
/// Rows times squared dimension up to which every part is held out in turn; beyond, the first two of five.
const CROSS_EFFORT: usize = 2_000_000;
/// When an iteration of the choice, and of the last fit, is done: rise of the mean log-likelihood as a share of its sampling error,
/// which is about sqrt(d / 2 n), and most steps.
const CHOICE: (f64, usize) = (0.02, 60);
const LAST: (f64, usize) = (0.01, 100);
/// More components are taken for a gain above this share of its standard error: a miss costs more than a needless component.
const LEAST_GAIN: f64 = 0.3;
/// Rows that are enough for all but the last steps of an iteration; a hundred per component, if that is more.
const COARSE: usize = 4000;
/// Starts of the fits of the choice, where they are quick.
const STARTS: u64 = 3;
/// Starts of the last fit.
const LAST_STARTS: u64 = 3;
/// Nats per row from which on twice the components are worth their cost.
const MEMBER_GAIN: f64 = 0.01;
/// How far a broad component over everything reaches beyond the data.
const BROAD: f64 = 2.0;

/// Fits candidates and remembers what they gave.
pub(super) struct Search<'a> {
    data: &'a Data,
    settings: &'a FitSettings,
    pool: &'a Pool,
    isa: Isa,
    /// Parts that are held out in turn.
    parts: u8,
    /// Train on every so many-th block of the rows, where there is more than the choice needs.
    thin: usize,
    pub tried: Vec<Candidate>,
}

/// Held-out log-densities, in the order of the rows, and the weights of the rows; none if all count the same.
struct Scores(Vec<f64>, Arc<[f64]>);

impl Scores {
    /// Mean and standard error of `self - other`.
    fn gain(&self, other: Option<&Scores>) -> (f64, f64) {
        match other {
            None => mean_and_error(&self.0, &self.1),
            Some(other) => {
                let gaps: Vec<f64> = self.0.iter().zip(&other.0).map(|(a, b)| a - b).collect();
                mean_and_error(&gaps, &self.1)
            }
        }
    }
}

/// Mean of values in the order of the rows, and its standard error from blocks of neighbouring ones: rows of a series are not
/// independent. With weights, that of the ratio of two sums: from the sums of `w (x - mean)` over the blocks.
pub(in crate::base) fn mean_and_error(values: &[f64], weights: &[f64]) -> (f64, f64) {
    let n = values.len();
    let count = BLOCKS.min(n);
    if !weights.is_empty() {
        let total: f64 = weights.iter().sum();
        // A row of weight zero says nothing, whatever its number.
        let counted = || values.iter().zip(weights).filter(|(_, w)| **w > 0.0);
        let mean = counted().map(|(x, w)| w * x).sum::<f64>() / total;
        let block = |b: usize| {
            let range = b * n / count..(b + 1) * n / count;
            let rows = values[range.clone()].iter().zip(&weights[range]);
            let off = rows.filter(|(_, w)| **w > 0.0).map(|(x, w)| w * (x - mean));
            off.sum::<f64>().powi(2)
        };
        let few = count as f64 / (count as f64 - 1.0).max(1.0);
        let square = (0..count).map(block).sum::<f64>() * few;
        return (mean, square.sqrt() / total);
    }
    let means: Vec<f64> = (0..count)
        .map(|b| {
            let block = &values[b * n / count..(b + 1) * n / count];
            block.iter().sum::<f64>() / block.len() as f64
        })
        .collect();
    let mean = values.iter().sum::<f64>() / n.max(1) as f64;
    let centre = means.iter().sum::<f64>() / count.max(1) as f64;
    let variance = means.iter().map(|m| (m - centre).powi(2)).sum::<f64>();
    let error = (variance / (count as f64 * (count as f64 - 1.0).max(1.0))).sqrt();
    (mean, error)
}

/// What is asked of a model and the rows it has not seen.
type Judge = dyn Fn(&Model, Isa, &[f64]) -> Vec<f64> + Sync;

struct Best {
    candidate: Candidate,
    scores: Scores,
}

impl<'a> Search<'a> {
    pub fn new(data: &'a Data, settings: &'a FitSettings, pool: &'a Pool, isa: Isa) -> Search<'a> {
        let effort = data.len() * data.dim * data.dim;
        let parts = match data.folds {
            5 if effort > CROSS_EFFORT => 2,
            folds => folds,
        };
        Search {
            parts,
            data,
            settings,
            pool,
            isa,
            thin: (effort / EFFORT).clamp(1, data.len().div_ceil(4000)),
            tried: vec![],
        }
    }

    /// Rows that are held out once.
    pub fn held_out_rows(&self) -> usize {
        let held = |fold: &&u8| **fold < self.parts;
        self.data.fold.iter().filter(held).count()
    }

    /// The best structure, number of components, strength of the prior and weight of a broad component.
    pub fn choose(&mut self, shapes: &[Shape]) -> Result<Candidate> {
        let mut best: Option<Best> = None;
        for shape in shapes {
            let Some(found) = self.grow(*shape, best.as_ref()) else {
                continue;
            };
            if best
                .as_ref()
                .is_none_or(|b| found.candidate.held_out > b.candidate.held_out)
            {
                best = Some(found);
            }
        }
        let Some(mut best) = best else {
            return Err(Error::Value {
                name: "mixture base",
                found: "no structure that can be fitted".into(),
                expected: "rows that vary".into(),
            });
        };
        // Less or more of the common shape, as long as it helps; more of it blurs thin components, so it must help for certain.
        for (factor, errors) in [(1.0 / 3.0, LEAST_GAIN), (3.0, 1.0)] {
            let before = best.candidate.tie;
            loop {
                let Candidate {
                    shape,
                    components,
                    tie,
                    ..
                } = best.candidate;
                let tie = tie * factor;
                if !(1e-3..1e4).contains(&tie) {
                    break;
                }
                match self.try_one(shape, components, tie) {
                    Some(other) if self.better(&other, &best, errors) => best = other,
                    _ => break,
                }
            }
            if best.candidate.tie != before {
                break;
            }
        }
        self.neighbours(&mut best);
        self.second_member(&mut best);
        self.background(&mut best);
        Ok(best.candidate)
    }

    /// With another strength of the prior, one step fewer or more components may be better.
    fn neighbours(&mut self, best: &mut Best) {
        let Candidate {
            shape,
            components,
            tie,
            ..
        } = best.candidate;
        if tie == 1.0 {
            return;
        }
        let at = COMPONENTS.iter().position(|k| *k == components);
        let near = |step: isize| at.and_then(|at| COMPONENTS.get(at.checked_add_signed(step)?));
        for (step, errors) in [(-1, 0.0), (1, LEAST_GAIN)] {
            let Some(count) = near(step).filter(|k| self.affords(**k)) else {
                continue;
            };
            if let Some(other) = self.try_one(shape, *count, tie)
                && self.better(&other, best, errors)
            {
                *best = other;
            }
        }
    }

    /// Whether so many components may be tried: each needs some distinct rows of its own.
    fn affords(&self, count: usize) -> bool {
        let distinct = self.data.effective() / self.data.multiplicity;
        count <= self.settings.most_components.max(1)
            && (count == 1 || distinct >= 4.0 * count as f64)
    }

    /// Whether the gain is more than `errors` of its standard errors.
    fn better(&self, new: &Best, old: &Best, errors: f64) -> bool {
        let (gain, error) = new.scores.gain(Some(&old.scores));
        gain > errors * error
    }

    /// More and more components of one structure. Structures that fall far behind the best so far are left early.
    fn grow(&mut self, shape: Shape, rival: Option<&Best>) -> Option<Best> {
        let mut best: Option<Best> = None;
        let mut idle = 0;
        for count in COMPONENTS {
            if !self.affords(count) {
                break;
            }
            let Some(found) = self.try_one(shape, count, 1.0) else {
                break;
            };
            match &best {
                Some(old) if !self.better(&found, old, LEAST_GAIN) => {
                    idle += 1;
                    if idle >= PATIENCE {
                        break;
                    }
                }
                _ => {
                    idle = 0;
                    best = Some(found);
                }
            }
            if let (Some(best), Some(rival)) = (&best, rival)
                && count >= 4
            {
                let (gain, error) = best.scores.gain(Some(&rival.scores));
                if gain < -8.0 * error {
                    break;
                }
            }
        }
        best
    }

    fn try_one(&mut self, shape: Shape, components: usize, tie: f64) -> Option<Best> {
        let scores = self.held_out(shape, components, tie, 0)?;
        let (held_out, error) = scores.gain(None);
        let candidate = Candidate {
            shape,
            components,
            tie,
            members: 1,
            background: 0.0,
            held_out,
            error,
        };
        self.tried.push(candidate.clone());
        held_out.is_finite().then_some(Best { candidate, scores })
    }

    /// The model fitted without each part in turn, judged on that part.
    fn held_out(&self, shape: Shape, components: usize, tie: f64, member: u64) -> Option<Scores> {
        let judge = |model: &Model, isa: Isa, rows: &[f64]| model.log_densities(isa, rows);
        self.each_part(&judge, (shape, components, tie), member)
    }

    /// The mean density of two fits from other starts: each ends in an optimum of its own, and the mean is never worse than they are
    /// on average. It costs twice the components.
    fn second_member(&mut self, best: &mut Best) {
        let Candidate {
            shape,
            components,
            tie,
            ..
        } = best.candidate;
        if components == 1 || !self.affords(2 * components) {
            return;
        }
        let Some(second) = self.held_out(shape, components, tie, 1) else {
            return;
        };
        let pairs = best.scores.0.iter().zip(&second.0);
        let half = 0.5_f64.ln();
        let mixed = pairs.map(|(a, b)| log_add(a + half, b + half)).collect();
        let mixed = Scores(mixed, best.scores.1.clone());
        let (held_out, error) = mixed.gain(None);
        let other = Best {
            candidate: Candidate {
                members: 2,
                held_out,
                error,
                ..best.candidate.clone()
            },
            scores: mixed,
        };
        self.tried.push(other.candidate.clone());
        let (gain, _) = other.scores.gain(Some(&best.scores));
        if self.better(&other, best, 2.0) && gain > MEMBER_GAIN {
            *best = other;
        }
    }

    fn each_part(
        &self,
        judge: &Judge,
        structure: (Shape, usize, f64),
        member: u64,
    ) -> Option<Scores> {
        let data = self.data;
        let folds = usize::from(self.parts);
        let results: Vec<Mutex<Option<Vec<f64>>>> = (0..folds).map(|_| Mutex::new(None)).collect();
        let job = |pool: Option<&Pool>, fold: usize| {
            let own = fold as u8;
            let thin =
                |i: usize| self.thin == 1 || (i / data.block.max(1)).is_multiple_of(self.thin);
            let kept = |i: usize| data.fold[i] != own && thin(i);
            let (mut rows, mut weights) = (data.share(kept), data.share_weights(kept));
            if rows.is_empty() || (!weights.is_empty() && weights.iter().sum::<f64>() <= 0.0) {
                (rows, weights) = (data.rows.clone(), data.weights.clone());
            }
            let test = data.share(|i| data.fold[i] == own);
            let start = (member << 16) + structure.1 as u64 * 64 + fold as u64;
            let model = self.best_of((&rows, &weights), structure, (start, CHOICE, pool));
            let scores = model.map(|model| judge(&model, self.isa, &test));
            *results[fold].lock().unwrap_or_else(PoisonError::into_inner) = scores;
        };
        if folds == 1 {
            job(Some(self.pool), 0);
        } else {
            self.pool.run(folds, &|_, fold| job(None, fold));
        }
        let mut parts = Vec::with_capacity(folds);
        for result in results {
            let part = result
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner)?;
            parts.push(part.into_iter());
        }
        // Back into the order of the rows.
        let all = data
            .fold
            .iter()
            .filter_map(|fold| parts.get_mut(usize::from(*fold))?.next());
        let all = all.collect();
        let held_out = data.share_weights(|i| data.fold[i] < self.parts);
        Some(Scores(all, held_out.into()))
    }

    /// The best of a few starts by the likelihood of the rows they were fitted to.
    fn best_of(
        &self,
        (rows, weights): (&[f64], &[f64]),
        (shape, components, tie): (Shape, usize, f64),
        (start, effort, pool): (u64, (f64, usize), Option<&Pool>),
    ) -> Option<Model> {
        let dim = self.data.dim;
        let n = rows.len() / dim;
        let em = Em {
            rows,
            weights,
            dim,
            floor: &self.data.floor,
            periods: &self.data.periods,
            prior: tie * (dim + 2) as f64 * self.data.multiplicity,
            pool,
            isa: self.isa,
        };
        // Most steps are made on a share of the rows, the last ones on all.
        let every = (n / COARSE.max(100 * components)).clamp(1, 8);
        let few: Vec<f64> = match every {
            1 => vec![],
            _ => rows
                .chunks_exact(dim)
                .step_by(every)
                .flatten()
                .copied()
                .collect(),
        };
        let few_weights: Vec<f64> = weights.iter().step_by(every).copied().collect();
        let coarse = Em {
            rows: if every == 1 { rows } else { &few },
            weights: if every == 1 { weights } else { &few_weights },
            ..em
        };
        let tolerance = |n: usize| effort.0 * (dim as f64 / (2.0 * n as f64)).sqrt();
        let starts = match components {
            1 => 1,
            _ if effort == LAST => LAST_STARTS,
            _ if n * components * dim <= 200_000 => STARTS,
            _ => 1,
        };
        let mut best: Option<(f64, Model)> = None;
        for attempt in 0..starts {
            let mut stream = Stream::new(self.settings.seed, PURPOSE, 3 + attempt, start);
            let labels = clusters(coarse.rows, dim, components, &mut stream);
            let how = (tolerance(coarse.rows.len() / dim), effort.1);
            let found = coarse.start(shape, &labels, components);
            let Some(found) = found.and_then(|model| coarse.run(model, how)) else {
                continue;
            };
            if best.as_ref().is_none_or(|(most, _)| found.0 > *most) {
                best = Some(found);
            }
        }
        let (_, model) = best?;
        if every == 1 {
            return Some(model);
        }
        let found = em.run(model, (tolerance(n), effort.1 / 3));
        found.map(|(_, model)| model)
    }

    /// Whether a broad component over everything helps on held-out rows (outliers), and with what weight.
    fn background(&mut self, best: &mut Best) {
        let Candidate { shape, tie, .. } = best.candidate;
        let broad = |model: &Model, isa: Isa, rows: &[f64]| {
            let wide = model.inflated(BROAD * BROAD);
            wide.map_or(vec![f64::NEG_INFINITY; rows.len() / model.dim], |m| {
                m.log_densities(isa, rows)
            })
        };
        let Some(Scores(broad, _)) = self.each_part(&broad, (shape, 1, tie), 0) else {
            return;
        };
        for weight in [0.003, 0.01, 0.03, 0.1] {
            let own = best.scores.0.iter().zip(&broad);
            let mixed = own.map(|(a, b)| log_add(a + f64::ln_1p(-weight), b + weight.ln()));
            let scores = Scores(mixed.collect(), best.scores.1.clone());
            let (held_out, error) = scores.gain(None);
            let candidate = Candidate {
                background: weight,
                held_out,
                error,
                ..best.candidate.clone()
            };
            self.tried.push(candidate.clone());
            let (gain, spread) = scores.gain(Some(&best.scores));
            // Each weight is compared with the mixture without a broad component.
            if gain > spread && held_out > best.candidate.held_out {
                best.candidate = candidate;
            }
        }
    }

    /// The chosen structure fitted to all rows, with its second member and its broad component.
    pub fn refit(&self, chosen: &Candidate) -> Result<Model> {
        let rows = (&*self.data.rows, &*self.data.weights);
        let last = |count, member| {
            let how = ((1_u64 << 32) + member, LAST, Some(self.pool));
            let model = self.best_of(rows, (chosen.shape, count, chosen.tie), how);
            model.ok_or_else(|| Error::Value {
                name: "mixture base",
                found: "a fit to all rows that breaks down".into(),
                expected: "finite likelihoods; look for values that are far too large".into(),
            })
        };
        let mut model = last(chosen.components, 0)?;
        if chosen.members == 2 {
            model = model.joined(0.5, &last(chosen.components, 1)?);
        }
        if chosen.background > 0.0
            && let Some(broad) = last(1, 0)?.inflated(BROAD * BROAD)
        {
            model = model.joined(1.0 - chosen.background, &broad);
        }
        Ok(model)
    }
}
