//! The page about a run on states: shares of states in data and model, verdicts, losses, settings, citation.

use super::album::Album;
use super::citation::states_bibtex;
use super::sections::{calibrated, losses, overlaps, size_cards, tail, verdict_cards, verdicts};
use super::{About, MOST_POINTS, Wish};
use crate::curve::{Curve, Series};
use crate::facts::states_facts;
use crate::matrix::Matrix;
use crate::page::{Figure, Page};
use diffclf::discrete::diagnose::StatesDiagnosis;
use diffclf::discrete::metric::all_log_densities;
use diffclf::discrete::model::{Content, StatesModel};
use diffclf::discrete::{LearnedStates, Space};
use diffclf_run::judging::diagnosis_settings;
use diffclf_run::memory::refuse_rows;
use diffclf_run::states::{StatesJudging, energy};
use diffclf_run::words::Setting;
use diffclf_run::{Error, Result, words};
use std::time::Instant;

/// States that have a picture of their own.
const FEW_STATES: usize = 6;
/// Sites whose pairs are shown.
const FEW_SITES: usize = 36;
/// Rows that are added up for the density's own histogram.
const FEW_ROWS: usize = 1 << 16;

/// Everything the page shows.
pub(super) struct Material {
    content: Content,
    energy: LearnedStates,
    judging: Option<StatesJudging>,
    pub(super) diagnosis: Option<StatesDiagnosis>,
    problem: Option<String>,
    about: About,
}

/// Computes; only the model itself must be there.
pub(super) fn gather(wish: &Wish<'_>, model: StatesModel) -> Result<Material> {
    if wish.pair.is_some() {
        return Err(Error::Refused(words!(
            Setting::new("pair"),
            " names columns of a scatter plot, and states have none; leave it out"
        )));
    }
    let content = model.content.clone();
    let points = wish.points.unwrap_or(MOST_POINTS);
    refuse_rows("points", points, content.spec.space.sites, 32)?;
    let energy = energy(&model, wish.machine.pool()?, wish.machine.isa()?)?;
    let mut progress = wish.watch.begin("report", 2, 0);
    let mut judging = match StatesJudging::gather(&content, wish.files, &wish.model) {
        Ok(judging) => Ok(judging),
        // Data that were named must be there; without any, the page is shorter.
        Err(error) if wish.files.data.iter().any(Option::is_some) => return Err(error),
        Err(error) => Err(error.to_string()),
    };
    if let Ok(judging) = &mut judging {
        let count = points.min(MOST_POINTS);
        judging.generate(&content, &energy, count, wish.seed, &mut |_| {})?;
    }
    progress.set(1, &|| "rows".into());
    let settings = diagnosis_settings(points, wish.seed);
    let diagnosis = judging.as_ref().map_err(String::clone).and_then(|judging| {
        let found = judging.diagnosis(&content, &energy, settings, &mut |_| {});
        found.map_err(|error| error.to_string())
    });
    progress.finish("done");
    Ok(Material {
        problem: diagnosis.as_ref().err().cloned(),
        diagnosis: diagnosis.ok(),
        judging: judging.ok(),
        about: About::of(wish),
        content,
        energy,
    })
}

/// Puts the page together.
pub(super) fn page(material: &Material, begin: Instant) -> (Page, Album) {
    let mut album = Album::default();
    let mut page = Page::new(&format!("Run {}", material.about.name));
    let (spec, record) = (&material.content.spec, &material.content.record);
    let data: Vec<&str> = record.data.iter().map(|data| data.name.as_str()).collect();
    page.lead(&format!(
        "An energy of {} sites of {} states learned from {}: {} noise, {} levels of time, {} steps. log p = -U + F, in units of {}.",
        spec.space.sites,
        spec.space.states,
        data.join(" and "),
        spec.process.generator().name(),
        spec.grid.levels(),
        record.steps,
        record.units
    ));
    let mut cards = Vec::new();
    if let Some(found) = &material.diagnosis {
        cards.extend(verdict_cards(found));
    }
    cards.extend(size_cards(spec.layout().len(), &material.about));
    page.cards(&cards);
    shares(material, &mut page, &mut album);
    let judged = material.judging.as_ref();
    let judged = judged.map(|judging| (judging.origin.as_str(), judging.only_trained));
    let found = material.diagnosis.as_ref();
    verdicts(found, judged, material.problem.as_deref(), &mut page);
    losses(&material.about.log, &mut page, &mut album);
    if let Some(found) = found {
        let mut figures = vec![calibrated(&found.calibration, &mut album)];
        figures.extend(overlaps(found, &mut album));
        page.heading("Level by level").wide_figures(&figures);
    }
    let sampled = material.judging.as_ref();
    let sampled = sampled.is_some_and(|judging| judging.generated.is_some());
    let bibtex = states_bibtex(&material.content, found.is_some(), sampled);
    let facts = states_facts(&material.content);
    tail(&mut page, &facts, &material.about, begin, &bibtex);
    (page, album)
}

/// How often sites show each state, how many sites of a row do, and how often pairs agree.
fn shares(material: &Material, page: &mut Page, album: &mut Album) {
    let (Some(found), Some(judging)) = (&material.diagnosis, &material.judging) else {
        return;
    };
    let Space { sites, states } = material.content.spec.space;
    let names = ["data", "density", "generated rows"];
    // Of two states one says it all.
    let shown: Vec<usize> = if states == 2 {
        vec![1]
    } else {
        (0..states.min(FEW_STATES)).collect()
    };
    let symbols = found.shares.symbols;
    let mut figures: Vec<Figure> = shown
        .iter()
        .map(|&state| {
            let line = |(name, shares): (&&str, &Option<Vec<f64>>)| {
                shares.as_ref().map(|shares| Series {
                    name: name.to_string(),
                    points: (0..sites)
                        .map(|i| (i as f64, shares[i * symbols + state]))
                        .collect(),
                })
            };
            let series: Vec<Series> = names
                .iter()
                .zip(&found.shares.sites)
                .filter_map(line)
                .collect();
            let svg = Curve {
                alt: &format!("how often each site shows state {state}"),
                x_label: "site",
                y_label: &format!("share of state {state}"),
                x_logarithmic: false,
                y_logarithmic: false,
                series: &series,
            }
            .svg();
            let caption = format!("How often each site shows state {state}");
            album.figure(&format!("sites-{state}"), svg, &caption)
        })
        .collect();
    let rows: Vec<u8> = judging.rows().start.iter().map(|x| *x as u8).collect();
    let all = all_rows(material);
    for &state in &shown {
        let count = |rows: &[u8], weights: Option<&[f64]>| -> Vec<(f64, f64)> {
            let mut bins = vec![0.0; sites + 1];
            let each = sites as f64 / rows.len() as f64;
            for (k, row) in rows.chunks_exact(sites).enumerate() {
                let hits = row.iter().filter(|s| usize::from(**s) == state).count();
                bins[hits] += weights.map_or(each, |w| w[k]);
            }
            let bins = bins.into_iter().enumerate();
            bins.map(|(k, share)| (k as f64, share)).collect()
        };
        let mut series = vec![(names[0], count(&rows, None))];
        if let Some((rows, weights)) = &all {
            series.push((names[1], count(rows, Some(weights))));
        }
        if let Some(made) = &judging.generated {
            series.push((names[2], count(made, None)));
        }
        let series: Vec<Series> = series
            .into_iter()
            .map(|(name, points)| Series {
                name: name.into(),
                points,
            })
            .collect();
        let svg = Curve {
            alt: &format!("how many sites of a row show state {state}"),
            x_label: &format!("sites that show state {state}"),
            y_label: "share of the rows",
            x_logarithmic: false,
            y_logarithmic: false,
            series: &series,
        }
        .svg();
        let caption =
            format!("How many sites of a row show state {state}; two humps are two phases");
        figures.push(album.figure(&format!("count-{state}"), svg, &caption));
    }
    page.heading("States in data and model")
        .wide_figures(&figures);
    if sites <= FEW_SITES {
        let labels: Vec<String> = (0..sites).map(|k| k.to_string()).collect();
        let mut pairs = vec![("data", rows.as_slice())];
        if let Some(made) = &judging.generated {
            pairs.push(("generated rows", made));
        }
        let figures: Vec<Figure> = pairs
            .into_iter()
            .map(|(name, rows)| {
                let values = agreement(rows, sites);
                let svg = Matrix {
                    alt: &format!("how often two sites agree in the {name}"),
                    label: "site",
                    names: &labels,
                    values: &values,
                }
                .svg();
                let caption = format!("How often two sites show the same state: {name}");
                album.figure(&format!("pairs-{}", name.replace(' ', "-")), svg, &caption)
            })
            .collect();
        page.figures(&figures);
    }
}

/// All rows with their probabilities, where there are few and no masks.
fn all_rows(material: &Material) -> Option<(Vec<u8>, Vec<f64>)> {
    let spec = &material.content.spec;
    let count = spec.space.count(FEW_ROWS)?;
    if spec.process.is_masked() {
        return None;
    }
    let values = all_log_densities(&material.energy, spec.grid.t_min())?;
    let mut rows = vec![0; count * spec.space.sites];
    for (number, row) in rows.chunks_exact_mut(spec.space.sites).enumerate() {
        spec.space.row_of(number, row);
    }
    Some((rows, values.into_iter().map(f64::exp).collect()))
}

/// How often two sites show the same state.
fn agreement(rows: &[u8], sites: usize) -> Vec<f64> {
    let mut counts = vec![0.0; sites * sites];
    for row in rows.chunks_exact(sites) {
        for (i, a) in row.iter().enumerate() {
            for (j, b) in row.iter().enumerate() {
                counts[i * sites + j] += f64::from(u8::from(a == b));
            }
        }
    }
    let total = (rows.len() / sites).max(1) as f64;
    counts.iter_mut().for_each(|count| *count /= total);
    counts
}
