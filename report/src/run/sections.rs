//! The page, section by section.

use super::album::Album;
use super::citation::bibtex;
use super::columns::columns;
use super::film::film;
use super::{About, Material, training};
use crate::curve::{Curve, Series};
use crate::facts::facts;
use crate::matrix::Matrix;
use crate::page::{Figure, Page};
use crate::scatter::Scatter;
use crate::verdict::{self, Shown, verdict_text};
use diffclf::metric::diagnose::{Calibration, Normaliser, NormaliserLevel, PathOverlap, Verdicts};
use diffclf_run::watch::duration_text;
use std::time::{Duration, Instant};

/// Rows of the scatter plots.
const POINTS: usize = 2000;

/// Puts the page together.
pub fn page(material: &Material, begin: Instant) -> (Page, Album) {
    let mut album = Album::default();
    let mut page = Page::new(&format!("Run {}", material.about.name));
    head(material, &mut page);
    let (frames, sentence) = film(material, &mut album);
    page.heading("Density over time")
        .paragraph(sentence)
        .film("time", &frames);
    columns(material, &mut page, &mut album);
    diagnosis(material, &mut page);
    samples(material, &mut page, &mut album);
    losses(&material.about.log, &mut page, &mut album);
    levels(material, &mut page, &mut album);
    let sampled = material
        .judging
        .as_ref()
        .is_some_and(|j| j.generated.is_some());
    let bibtex = bibtex(&material.content, material.diagnosis.is_some(), sampled);
    tail(
        &mut page,
        &facts(&material.content),
        &material.about,
        begin,
        &bibtex,
    );
    (page, album)
}

/// What stands at the end of every page: settings, time, citation, and how to make it again.
pub(super) fn tail(
    page: &mut Page,
    facts: &[(&'static str, String)],
    about: &About,
    begin: Instant,
    bibtex: &str,
) {
    let listed = facts
        .iter()
        .map(|(name, value)| (name.to_string(), value.clone()));
    page.heading("Settings and time")
        .facts(
            "The model and how it was trained, defaults included",
            &listed.collect::<Vec<_>>(),
        )
        .table(&training::timing(&about.log, begin.elapsed().as_secs_f64()));
    if let Some(config) = &about.config {
        page.details("config.toml of the run", config);
    }
    page.heading("Citation")
        .paragraph("The methods that this run and this page used.")
        .verbatim(bibtex)
        .heading("Again")
        .verbatim(&about.command)
        .footer(&format!(
            "Written by diffclf {}.",
            env!("CARGO_PKG_VERSION")
        ));
}

/// What it is, and the figures that matter most.
fn head(material: &Material, page: &mut Page) {
    let (spec, record) = (&material.content.spec, &material.content.record);
    let data: Vec<&str> = record.data.iter().map(|data| data.name.as_str()).collect();
    page.lead(&format!(
        "An energy of dimension {} learned from {}: {} process, {} levels of time, {} steps. log p = -U + F, in units of {}.",
        spec.dim,
        data.join(" and "),
        spec.process.name(),
        spec.grid.levels(),
        record.steps,
        record.units
    ));
    let mut cards = Vec::new();
    if let Some(found) = &material.diagnosis {
        cards.extend(verdict_cards(found));
        if let Some(distance) = found.modes.density_distance {
            let percent = 100.0 * distance.mean;
            let modes = found.modes.basins.len();
            cards.push((
                "misplaced probability",
                format!("{percent:.1} % over {modes} basins"),
                None,
            ));
        }
    }
    if let Some(found) = &material.evaluation {
        cards.push((
            "R² of log-densities",
            format!("{:.4}", found.average.r2),
            None,
        ));
    }
    cards.extend(size_cards(spec.layout().len(), &material.about));
    page.cards(&cards);
}

/// A figure of the head: its name, its text, its mark.
pub(super) type Card = (&'static str, String, Option<&'static str>);

/// What a diagnosis says first.
pub(super) fn verdict_cards(found: &dyn Verdicts) -> Vec<Card> {
    let mark = found.verdict().name();
    vec![
        ("verdict without ground truth", mark.into(), Some(mark)),
        (
            "held-out log-likelihood",
            format!("{:.2} nats per row", found.nats().mean),
            None,
        ),
        (
            "classification loss",
            format!("{:.3} nats", found.calibration().loss.mean),
            None,
        ),
    ]
}

/// How large the model is, and how long it was trained.
pub(super) fn size_cards(parameters: usize, about: &About) -> Vec<Card> {
    let mut cards = vec![("parameters", parameters.to_string(), None)];
    if let Some(seconds) = training::seconds(&about.log) {
        let time = Duration::from_secs_f64(seconds.clamp(0.0, 1e12));
        cards.push(("training time", duration_text(time), None));
    }
    cards
}

fn diagnosis(material: &Material, page: &mut Page) {
    let judged = material.judging.as_ref();
    let judged = judged.map(|judging| (judging.origin.as_str(), judging.only_trained));
    let found = material.diagnosis.as_ref();
    verdicts(found, judged, material.problem.as_deref(), page);
}

/// The diagnosis, or why there is none.
pub(super) fn verdicts<D: Shown>(
    found: Option<&D>,
    judged: Option<(&str, bool)>,
    problem: Option<&str>,
    page: &mut Page,
) {
    page.heading("Is it any good?");
    let Some(found) = found else {
        let problem = problem.unwrap_or_default();
        page.paragraph(&format!("There is no diagnosis: {problem}."));
        return;
    };
    if let Some((origin, only_trained)) = judged {
        let mut text = format!(
            "Verdict: {}. Judged without knowing the truth, by {origin}.",
            verdict_text(found)
        );
        if only_trained {
            text += " Rows that were trained on are kind to every model: hold some out, or give others.";
        }
        page.paragraph(&text);
    }
    verdict::checks(found, page);
}

/// Data and generated samples side by side, on the same axes.
fn samples(material: &Material, page: &mut Page, album: &mut Album) {
    let Some(judging) = &material.judging else {
        return;
    };
    let dim = material.content.spec.dim;
    // As many of both, from all over the rows.
    let Some((rows, _)) = &material.shown else {
        return;
    };
    let made = judging.generated.as_ref().map_or(usize::MAX, Vec::len);
    let count = POINTS.min(rows.len() / dim).min(made / dim);
    let cut = |rows: &[f64]| -> Vec<f64> {
        let all = rows.len() / dim;
        let places = (0..count).map(|k| k * all / count.max(1));
        places
            .flat_map(|k| &rows[k * dim..][..dim])
            .copied()
            .collect()
    };
    let mut data = cut(rows);
    material.content.standardisation.to_data(&mut data);
    let mut clouds = vec![("data", material.view.project(&data))];
    if let Some(generated) = &judging.generated {
        let mut generated = cut(generated);
        material.content.standardisation.to_data(&mut generated);
        clouds.push(("generated samples", material.view.project(&generated)));
    }
    let labels = &material.view.labels;
    let all: Vec<(f64, f64)> = clouds
        .iter()
        .flat_map(|(_, points)| points.clone())
        .collect();
    let [x, y] = material.view.axes(&material.content, &all);
    let figures: Vec<Figure> = clouds
        .iter()
        .enumerate()
        .map(|(colour, (name, points))| {
            let svg = Scatter {
                alt: &format!("{name}, {} points", points.len()),
                x: x.clone(),
                y: y.clone(),
                points,
                colour,
            }
            .svg();
            let caption = format!("{} {name}", points.len());
            album.figure(&name.replace(' ', "-"), svg, &caption)
        })
        .collect();
    page.heading("Samples beside data");
    if dim > 2 {
        page.paragraph(&format!(
            "Seen along {} and {}, out of {dim} dimensions.",
            labels[0], labels[1]
        ));
    }
    page.figures(&figures);
}

/// Losses by step.
pub(super) fn losses(log: &[serde_json::Value], page: &mut Page, album: &mut Album) {
    let curves = training::losses(log);
    if curves.is_empty() {
        return;
    }
    let figures: Vec<Figure> = curves
        .into_iter()
        .map(|(name, svg)| {
            album.figure(
                &format!("loss-{name}"),
                svg,
                &format!("{name} loss by step"),
            )
        })
        .collect();
    page.heading("During training").wide_figures(&figures);
}

/// Everything that is a function of time.
fn levels(material: &Material, page: &mut Page, album: &mut Album) {
    let mut figures = Vec::new();
    if let Some(found) = &material.diagnosis {
        figures.push(calibrated(&found.calibration, album));
        if !found.normaliser.levels.is_empty() {
            figures.push(album.figure(
                "free-energy",
                normaliser(&found.normaliser),
                "log Z + F, relative to the first level, by MBAR over the learned energies: 0 where F(t) is right. Between the dotted \
                 lines is chance.",
            ));
        }
        figures.extend(overlaps(found, album));
    }
    if let Some(found) = &material.evaluation {
        let series = |name: &str, of: &dyn Fn(&diffclf::metric::Level) -> f64| Series {
            name: name.into(),
            points: found
                .levels
                .iter()
                .map(|level| (level.time, of(level).max(0.0)))
                .collect(),
        };
        let svg = Curve {
            alt: "agreement with the exact density over time",
            x_label: "time",
            y_label: "share",
            x_logarithmic: true,
            y_logarithmic: false,
            series: &[
                series("R² of log-densities", &|level| level.r2),
                series("effective sample size", &|level| level.ess),
            ],
        }
        .svg();
        figures.push(album.figure(
            "exact-agreement",
            svg,
            "Against the exact density, which is known for this system: 1 is perfect, values below 0 are drawn as 0.",
        ));
    }
    if !figures.is_empty() {
        page.heading("Level by level").wide_figures(&figures);
    }
}

/// How certain the guesses of the level are, and how often right.
pub(super) fn calibrated(calibration: &Calibration, album: &mut Album) -> Figure {
    album.figure(
        "calibration",
        reliability(calibration),
        "Calibration: of the points whose noise level the model names with this confidence, the share it gets right. Between the \
         dotted lines is chance.",
    )
}

/// Overlap of bands of levels, and of neighbours.
pub(super) fn overlaps(found: &dyn Verdicts, album: &mut Album) -> [Figure; 2] {
    let bands = overlap(found.calibration(), album);
    let links = album.figure(
        "ess-of-links",
        links(found.path()),
        "Effective sample size of the weights from each level to the next.",
    );
    [bands, links]
}

/// Confidence against the share of right guesses.
fn reliability(calibration: &Calibration) -> String {
    let line = |name: &str, of: &dyn Fn(&diffclf::metric::diagnose::Bin) -> f64| Series {
        name: name.into(),
        points: calibration
            .bins
            .iter()
            .map(|bin| (bin.predicted, of(bin)))
            .collect(),
    };
    Curve {
        alt: "share of right guesses against confidence",
        x_label: "confidence",
        y_label: "share of right guesses",
        x_logarithmic: false,
        y_logarithmic: false,
        series: &[
            line("found", &|bin| bin.observed),
            line("calibrated", &|bin| bin.predicted),
            line("calibrated + 2 standard deviations", &|bin| {
                (bin.predicted + 2.0 * bin.error).min(1.0)
            }),
            line("calibrated - 2 standard deviations", &|bin| {
                (bin.predicted - 2.0 * bin.error).max(0.0)
            }),
        ],
    }
    .svg()
}

/// What F(t) misses, with two standard deviations of chance around zero.
fn normaliser(normaliser: &Normaliser) -> String {
    let line = |name: &str, of: &dyn Fn(&NormaliserLevel) -> f64| Series {
        name: name.into(),
        points: normaliser
            .levels
            .iter()
            .map(|level| (level.time, of(level)))
            .collect(),
    };
    Curve {
        alt: "gap between F and MBAR over time",
        x_label: "time",
        y_label: "log Z + F (nats)",
        x_logarithmic: false,
        y_logarithmic: false,
        series: &[
            line("found", &|level| level.gap.mean),
            line("right", &|_| 0.0),
            line("+ 2 standard deviations", &|level| 2.0 * level.gap.error),
            line("- 2 standard deviations", &|level| -2.0 * level.gap.error),
        ],
    }
    .svg()
}

/// Which band of levels points of each band could come from.
fn overlap(calibration: &Calibration, album: &mut Album) -> Figure {
    let bands = calibration.bands.len();
    let names: Vec<String> = (1..=bands).map(|k| k.to_string()).collect();
    let matrix = Matrix {
        alt: "overlap between bands of levels",
        label: "band of levels",
        names: &names,
        values: &calibration.overlap,
    };
    let ends = [calibration.bands.first(), calibration.bands.last()].map(|band| {
        band.map_or(String::new(), |band| {
            format!("{:.3} to {:.3}", band.times[0], band.times[1])
        })
    });
    let caption = format!(
        "Overlap: where points of a row's band could come from; the levels in {bands} bands of neighbours, band 1 holds times {}, band {bands} times {}.",
        ends[0], ends[1]
    );
    album.figure("overlap", matrix.svg(), &caption)
}

fn links(path: &PathOverlap) -> String {
    let links = &path.links;
    let times = links.iter().map(|link| link.times[0]);
    let first = times.clone().fold(f64::INFINITY, f64::min);
    Curve {
        alt: "effective sample size between neighbouring levels over time",
        x_label: "time",
        y_label: "effective sample size",
        x_logarithmic: first > 0.0,
        y_logarithmic: false,
        series: &[Series {
            name: "from one level to the next".into(),
            points: times
                .zip(links)
                .map(|(time, link)| (time, link.ess))
                .collect(),
        }],
    }
    .svg()
}
