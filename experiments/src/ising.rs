//! Spins below their critical temperature with a weak field: how much weight score entropy alone gives to the two phases, and how much
//! with classification of noise levels beside it. All by enumeration of the lattice.

use crate::Bench;
use crate::catalogue::{Experiment, Picture};
use crate::cell::CellRecord;
use diffclf::discrete::metric::{all_log_densities, enumerated, is_up, normalise_last, share};
use diffclf::discrete::model::StatesSpec;
use diffclf::discrete::network::SitesNetwork;
use diffclf::discrete::objective::StatesObjectiveName;
use diffclf::discrete::sample::{Anneal, Kernel};
use diffclf::discrete::system::{ExactStates, Lattice, LogWeights, Table, Target};
use diffclf::discrete::train::{StatesCourse, StatesSettings};
use diffclf::discrete::{Energy, LearnedStates, Process};
use diffclf::objective::parse_sum;
use diffclf::process::TimeSampler;
use diffclf::rng::{Purpose, Stream};
use diffclf::train::{Adam, Decay, Rate, Source, StageSettings, Trainer, finish};
use diffclf_report::curve::{Curve, Series};
use diffclf_report::page::Figure;
use diffclf_run::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// `[experiment]` of the spins.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ising {
    /// Spins of a side of the torus.
    side: usize,
    /// Coupling in kT; the critical one is 0.4407.
    coupling: f64,
    /// Field in kT.
    field: f64,
    quick: Budget,
    full: Budget,
}

/// A budget.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    seeds: u64,
    steps: u64,
    batch: usize,
    width: usize,
    depth: usize,
    levels: usize,
    rate: f64,
    particles: usize,
}

/// Names of the cells, and what they train.
const METHODS: [(&str, &str); 2] = [
    ("score-entropy", "score-entropy"),
    ("score-entropy-diffclf", "score-entropy+diffclf"),
];

/// The experiment at a budget.
pub struct AtBudget<'a> {
    spins: &'a Ising,
    budget: &'a Budget,
}

impl Ising {
    /// At a budget.
    pub fn at(&self, quick: bool) -> AtBudget<'_> {
        let budget = if quick { &self.quick } else { &self.full };
        AtBudget {
            spins: self,
            budget,
        }
    }
}

/// Draws rows of a table afresh.
struct Fresh {
    table: Arc<Table>,
    seed: u64,
}

impl Source for Fresh {
    fn fill(&self, step: u64, unit: usize, out: &mut [f32]) {
        let mut row = vec![0; out.len()];
        let mut stream = Stream::new(self.seed, Purpose::Rows(0), step, unit as u64);
        self.table.sample(&mut stream, &mut row);
        out.iter_mut()
            .zip(row)
            .for_each(|(out, s)| *out = f32::from(s));
    }
}

impl AtBudget<'_> {
    fn settings_of(&self, terms: &str, seed: u64) -> Result<StatesSettings> {
        let b = self.budget;
        Ok(StatesSettings {
            seed,
            batch: b.batch,
            times: TimeSampler::default(),
            clip: Some(1.0),
            adam: Adam::default(),
            average: Some(0.999),
            held_out: None,
            rotate: false,
            levelling: false,
            stages: vec![StageSettings {
                steps: b.steps,
                levels: b.levels,
                objectives: parse_sum::<StatesObjectiveName>(terms)?,
                rate: Rate {
                    peak: b.rate,
                    decay: Decay::Cosine,
                    warm_up: 0,
                },
            }],
        })
    }
}

/// Histogram of the magnetisation per spin.
fn magnetisation(table: &Table, log_densities: &[f64]) -> Vec<(f64, f64)> {
    let space = table.space();
    let mut shares = vec![0.0; space.sites + 1];
    let mut row = vec![0; space.sites];
    let total: f64 = log_densities.iter().map(|x| x.exp()).sum();
    for (number, log_density) in log_densities.iter().enumerate() {
        space.row_of(number, &mut row);
        let up: usize = row.iter().map(|s| usize::from(*s)).sum();
        shares[up] += log_density.exp() / total;
    }
    let n = space.sites as f64;
    let point = |(up, share): (usize, &f64)| (2.0 * up as f64 / n - 1.0, *share);
    shares.iter().enumerate().map(point).collect()
}

impl Experiment for AtBudget<'_> {
    fn cells(&self) -> Vec<String> {
        let mut cells: Vec<String> = METHODS
            .iter()
            .flat_map(|(name, _)| (0..self.budget.seeds).map(move |seed| format!("{name}-s{seed}")))
            .collect();
        cells.push("exact".into());
        cells
    }

    fn settings(&self) -> Result<serde_json::Value> {
        serde_json::to_value((
            self.spins.side,
            self.spins.coupling,
            self.spins.field,
            self.budget,
        ))
        .map_err(|error| Error::Failed(format!("the settings cannot be written: {error}")))
    }

    fn run(&self, cell: &str, bench: &Bench) -> Result<CellRecord> {
        let s = self.spins;
        let lattice = Lattice::ising(s.side, s.side, s.coupling, s.field);
        let table = Arc::new(Table::of(&lattice)?);
        let process = Process::default();
        let mut spec = StatesSpec::new(table.space(), process)?;
        spec.network = SitesNetwork::Mlp {
            width: self.budget.width,
            depth: self.budget.depth,
        };
        let time = spec.grid.t_min();
        let exact = ExactStates {
            target: table.clone(),
            process,
        };
        let truth = all_log_densities(&exact, time)
            .ok_or_else(|| Error::Failed("the lattice is too large".into()))?;
        if cell == "exact" {
            let figures = [
                ("positive", share(table.space(), &truth, is_up)),
                ("log_z", table.log_partition()),
            ];
            return Ok(CellRecord {
                figures: figures
                    .map(|(name, value)| (name.to_string(), value.into()))
                    .into(),
                series: [("magnetisation".to_string(), magnetisation(&table, &truth))].into(),
                ..CellRecord::default()
            });
        }
        let found = METHODS.iter().find_map(|(name, terms)| {
            let seed = cell.strip_prefix(name)?.strip_prefix("-s")?.parse().ok()?;
            Some((*terms, seed))
        });
        let (terms, seed): (&str, u64) =
            found.ok_or_else(|| Error::Failed(format!("{cell} is no cell")))?;
        let up: f64 = share(table.space(), &truth, |row| row[0] == 1);
        spec.laws
            .chunks_exact_mut(2)
            .for_each(|law| law.copy_from_slice(&[1.0 - up, up]));
        let settings = self.settings_of(terms, seed)?;
        let source = Arc::new(Fresh {
            table: table.clone(),
            seed,
        });
        let course = StatesCourse::new(
            &spec,
            &settings,
            source,
            None,
            bench.pool.clone(),
            bench.isa,
        )?;
        let mut trainer = Trainer::of(course, &settings)?;
        finish(&mut trainer)?;
        let mut params = trainer.averaged().to_vec();
        let learned = |params: &[f32]| {
            LearnedStates::new(spec.clone(), params.to_vec(), bench.pool.clone(), bench.isa)
        };
        let shift = normalise_last(&learned(&params)?, &spec, seed) as f32;
        if let Some(entry) = spec.layout().get("free_energy") {
            params[entry.range()].iter_mut().for_each(|f| *f += shift);
        }
        let energy = learned(&params)?;
        let all = all_log_densities(&energy, time)
            .ok_or_else(|| Error::Failed("the lattice is too large".into()))?;
        let law: Vec<f64> = truth.iter().map(|x| x.exp()).collect();
        let compared = enumerated(&all, &law);
        let target = |row: &[u8]| lattice.log_weight(row);
        let times: Vec<f64> = spec
            .grid
            .times()
            .iter()
            .step_by(4)
            .copied()
            .chain([spec.grid.t_max()])
            .collect();
        let mut distinct = times;
        distinct.dedup();
        let anneal = Anneal {
            energy: &energy as &dyn Energy,
            times: &distinct,
            target: Some(&target),
            kernel: Kernel::Gibbs,
            sweeps: 1,
            resample_below: 0.5,
            particles: self.budget.particles / 8,
            runs: 8,
            seed,
        };
        let annealed = anneal.run(&mut |_| {})?;
        let figures = [
            ("positive", share(table.space(), &all, is_up)),
            ("kl", compared.normalised_divergence),
            ("log_sum", compared.log_total),
            ("log_z", annealed.log_z.value),
        ];
        Ok(CellRecord {
            figures: figures
                .map(|(name, value)| (name.to_string(), value.into()))
                .into(),
            series: [("magnetisation".to_string(), magnetisation(&table, &all))].into(),
            ..CellRecord::default()
        })
    }

    fn pictures(&self, records: &BTreeMap<String, CellRecord>) -> Result<Vec<Picture>> {
        let shown = |cell: &str| cell == "exact" || cell.ends_with("-s0");
        let series: Vec<Series> = records
            .iter()
            .filter(|(cell, _)| shown(cell))
            .filter_map(|(cell, record)| {
                Some(Series {
                    name: cell.trim_end_matches("-s0").to_string(),
                    points: record.series.get("magnetisation")?.clone(),
                })
            })
            .collect();
        let caption = "Share of each magnetisation, learned and exact: two phases, the positive one favoured by a weak field";
        let svg = Curve {
            alt: caption,
            x_label: "magnetisation per spin",
            y_label: "probability",
            x_logarithmic: false,
            y_logarithmic: false,
            series: &series,
        }
        .svg();
        Ok(vec![Picture {
            name: "magnetisation".into(),
            figure: Figure {
                svg,
                caption: caption.into(),
            },
        }])
    }
}
