//! The density over time: frames for a slider, from the data to the noise.

use super::Material;
use super::album::Album;
use crate::axis::Axis;
use crate::curve::{Curve, Series};
use crate::heatmap::Heatmap;
use crate::page::Frame;
use crate::scatter::Scatter;
use diffclf::energy::{Energy, Prior};
use diffclf::metric::diagnose::Noised;
use diffclf::sample::{Sampler, Task};

/// Frames of a film.
const FRAMES: usize = 20;
/// Free energies above this are not shown, in kT.
pub(super) const HIGHEST: f64 = 8.0;
/// Cells of a picture's side.
const CELLS: usize = 110;
/// Points of a scatter plot in a frame.
const POINTS: usize = 700;
/// Steps of a sampler for a film; the samples of the page itself take all.
const STEPS: usize = 96;
/// Axes of all frames are alike if none is magnified more than so much by it.
const ALIKE: f64 = 3.0;

/// The frames, and a sentence on what they show.
pub fn film(material: &Material, album: &mut Album) -> (Vec<Frame>, &'static str) {
    let times = times(material);
    match material.content.spec.dim {
        1 => (
            lines(material, &times, album),
            "The learned density, and a histogram of the data noised to the same time.",
        ),
        2 if material.view.complete => (
            planes(material, &times, album),
            "The learned free energy, -log p in kT above its lowest point, at each time, beside data noised to the same time. Lines at 1, 2, 4 and 6 kT; what \
             lies above 8 kT is blank.",
        ),
        _ => (
            clouds(material, &times, album),
            "Data noised to each time, beside samples on their way from noise to data; both seen along two directions out of more, so \
             no density is shown.",
        ),
    }
}

/// Times of the frames, denser near the data.
fn times(material: &Material) -> Vec<f64> {
    let grid = material.content.spec.grid.times();
    let last = grid.len() - 1;
    let frames = FRAMES.min(grid.len());
    let power = if material.content.spec.process.is_interpolant() {
        1.0
    } else {
        1.5
    };
    let mut levels: Vec<usize> = (0..frames)
        .map(|k| {
            let share = k as f64 / (frames - 1).max(1) as f64;
            (share.powf(power) * last as f64).round() as usize
        })
        .collect();
    levels.dedup();
    levels.into_iter().map(|level| grid[level]).collect()
}

fn name(material: &Material, time: f64) -> String {
    let noise = material.content.spec.process.noise_level(time);
    format!("t = {time:.3}, noise level {noise:.2}")
}

/// Noised rows in the user's coordinates.
fn noised(material: &Material, time: f64) -> Vec<f64> {
    let Some(judging) = &material.judging else {
        return Vec::new();
    };
    let process = &material.content.spec.process;
    let mut points = Noised::new(judging.rows(), process, material.seed).points(time, POINTS);
    material.content.standardisation.to_data(&mut points);
    points
}

/// What a frame is drawn on: points of the true marginal, or of the model's Gaussian where there are no data.
fn extent(material: &Material, time: f64) -> Vec<(f64, f64)> {
    let rows = noised(material, time);
    if !rows.is_empty() {
        return material.view.project(&rows);
    }
    let spec = &material.content.spec;
    let prior = Prior::new(&spec.process, time, &spec.mean, spec.variance);
    let corners = [-2.5, 2.5].map(|z| {
        let mut point = vec![0.0; spec.dim];
        prior.points(&vec![z; spec.dim], &mut point);
        material.content.standardisation.to_data(&mut point);
        material.view.project(&point)
    });
    corners.concat()
}

/// Axes of every frame: the same for all, unless that would make some frame a dot.
fn axes(material: &Material, times: &[f64]) -> Vec<[Axis; 2]> {
    let clouds: Vec<Vec<(f64, f64)>> = times.iter().map(|time| extent(material, *time)).collect();
    let of = |points: &[(f64, f64)]| material.view.axes(&material.content, points);
    let all = of(&clouds.concat());
    let own: Vec<[Axis; 2]> = clouds.iter().map(|points| of(points)).collect();
    let widest = |axes: &[Axis; 2]| axes[0].width().max(axes[1].width());
    let alike = own.iter().all(|axes| widest(axes) * ALIKE > widest(&all));
    if alike { vec![all; own.len()] } else { own }
}

/// Densities in the plane.
fn planes(material: &Material, times: &[f64], album: &mut Album) -> Vec<Frame> {
    let axes = axes(material, times);
    let mut frames = Vec::new();
    for (k, (time, [x, y])) in times.iter().zip(axes).enumerate() {
        let mut points = Vec::with_capacity(2 * CELLS * CELLS);
        for cell in 0..CELLS * CELLS {
            let place = |i: usize| (i as f64 + 0.5) / CELLS as f64;
            points.extend([x.value(place(cell % CELLS)), y.value(place(cell / CELLS))]);
        }
        let shade = |energy: &dyn Energy| {
            let mut values = vec![0.0; CELLS * CELLS];
            let energy = material.content.in_data_coordinates(energy);
            energy.log_density(&[*time], &points, &mut values);
            let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for v in &mut values {
                let free_energy = largest - *v;
                *v = if free_energy < HIGHEST {
                    free_energy
                } else {
                    f64::NAN
                };
            }
            values
        };
        let picture = |values: &[f64], what: &str, album: &mut Album| {
            let heatmap = Heatmap {
                alt: &format!("{what} free energy at {}", name(material, *time)),
                x: x.clone(),
                y: y.clone(),
                columns: CELLS,
                values,
                colour: Axis::linear("−log p (kT)", 0.0, HIGHEST),
                contours: &[1.0, 2.0, 4.0, 6.0],
            };
            album.heatmap(
                &format!("free-energy-{what}-{k:02}"),
                &heatmap,
                &format!("{what} free energy"),
            )
        };
        let mut figures = vec![picture(&shade(&material.energy), "learned", album)];
        if let Some(exact) = &material.exact {
            figures.push(picture(&shade(exact), "exact", album));
        }
        let rows = noised(material, *time);
        if !rows.is_empty() {
            let svg = Scatter {
                alt: &format!("data noised to {}", name(material, *time)),
                x,
                y,
                points: &material.view.project(&rows),
                colour: 0,
            }
            .svg();
            figures.push(album.figure(
                &format!("noised-data-{k:02}"),
                svg,
                "data with this much noise",
            ));
        }
        frames.push(Frame {
            name: name(material, *time),
            figures,
        });
    }
    frames
}

/// Clouds of points seen along two directions.
fn clouds(material: &Material, times: &[f64], album: &mut Album) -> Vec<Frame> {
    let axes = axes(material, times);
    let mut frames = Vec::new();
    for (k, (time, [x, y])) in times.iter().zip(axes).enumerate() {
        let mut figures = Vec::new();
        let mut draw = |rows: &[f64], what: &str, colour: usize, album: &mut Album| {
            if rows.is_empty() {
                return;
            }
            let svg = Scatter {
                alt: &format!("{what} at {}", name(material, *time)),
                x: x.clone(),
                y: y.clone(),
                points: &material.view.project(rows),
                colour,
            }
            .svg();
            let file = what.replace(' ', "-");
            figures.push(album.figure(&format!("{file}-{k:02}"), svg, what));
        };
        draw(&noised(material, *time), "noised data", 0, album);
        draw(&travelling(material, *time), "generated samples", 1, album);
        frames.push(Frame {
            name: name(material, *time),
            figures,
        });
    }
    frames
}

/// Samples of the model on their way, at `time`; none of an interpolant, or if the sampler fails there.
fn travelling(material: &Material, time: f64) -> Vec<f64> {
    let spec = &material.content.spec;
    let coarse = spec.grid.with_levels(STEPS.min(spec.grid.levels()));
    let (false, Ok(grid)) = (spec.process.is_interpolant(), coarse) else {
        return Vec::new();
    };
    let mut times: Vec<f64> = grid.times().iter().rev().copied().collect();
    times.retain(|t| *t > time);
    times.push(time);
    if times.len() < 2 {
        times.insert(0, spec.grid.t_max() * (1.0 + 1e-9));
        times[0] = times[0].min(spec.process.horizon());
    }
    let task = Task {
        energy: &material.energy,
        process: &spec.process,
        times: &times,
        start: &Prior::of(spec),
        particles: 0..POINTS as u64,
        seed: material.seed,
    };
    let points = Sampler::by_name("ddim").and_then(|sampler| sampler.run(&task, &mut |_| ()));
    points.map_or(Vec::new(), |mut points| {
        material.content.standardisation.to_data(&mut points);
        points
    })
}

/// The same as free energies, each above its lowest point; what lies above the highest that is shown is left out.
fn free_energy_line(material: &Material, series: &[Series], time: f64) -> String {
    let of = |series: &Series| {
        let largest = series.points.iter().map(|p| p.1).fold(0.0, f64::max);
        let point = |(x, density): &(f64, f64)| (*x, (largest / density).ln());
        let kept = |p: &(f64, f64)| p.1 <= HIGHEST;
        Series {
            name: series.name.clone(),
            points: series.points.iter().map(point).filter(kept).collect(),
        }
    };
    let series: Vec<Series> = series.iter().map(of).collect();
    Curve {
        alt: &format!("free energy at {}", name(material, time)),
        x_label: &material.view.labels[0],
        y_label: "−log p (kT)",
        x_logarithmic: false,
        y_logarithmic: false,
        series: &series,
    }
    .svg()
}

/// Densities on the line.
fn lines(material: &Material, times: &[f64], album: &mut Album) -> Vec<Frame> {
    let axes = axes(material, times);
    let mut frames = Vec::new();
    for (k, (time, [x, _])) in times.iter().zip(axes).enumerate() {
        let places: Vec<f64> = (0..400)
            .map(|i| x.value((f64::from(i) + 0.5) / 400.0))
            .collect();
        let mut points = places.clone();
        let learned = material.content.in_data_coordinates(&material.energy);
        let mut densities = vec![0.0; points.len()];
        learned.log_density(&[*time], &points, &mut densities);
        material.content.standardisation.to_model(&mut points);
        // A model of an interpolant is normalised up to a constant: the curve sums to one over the picture.
        let largest = densities.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let step = x.width() / 400.0;
        let mass: f64 = densities.iter().map(|d| (d - largest).exp() * step).sum();
        let mut series = vec![Series {
            name: "learned density".into(),
            points: places
                .iter()
                .zip(&densities)
                .map(|(x, d)| (*x, (d - largest).exp() / mass))
                .collect(),
        }];
        let rows = noised(material, *time);
        if !rows.is_empty() {
            let mut counts = [0.0; 40];
            for place in rows.iter().filter_map(|row| x.place(*row)) {
                if (0.0..1.0).contains(&place) {
                    counts[(place * 40.0) as usize] += 1.0 / (rows.len() as f64 * x.width() / 40.0);
                }
            }
            let edges = counts.iter().enumerate().flat_map(|(i, height)| {
                [i, i + 1].map(|edge| (x.value(edge as f64 / 40.0), *height))
            });
            series.push(Series {
                name: "data with this much noise".into(),
                points: edges.collect(),
            });
        }
        let svg = Curve {
            alt: &format!("density at {}", name(material, *time)),
            x_label: &material.view.labels[0],
            y_label: "density",
            x_logarithmic: false,
            y_logarithmic: false,
            series: &series,
        }
        .svg();
        frames.push(Frame {
            name: name(material, *time),
            figures: vec![
                album.figure(&format!("density-{k:02}"), svg, "density"),
                album.figure(
                    &format!("free-energy-{k:02}"),
                    free_energy_line(material, &series, *time),
                    "free energy",
                ),
            ],
        });
    }
    frames
}
