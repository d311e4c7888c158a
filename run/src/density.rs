//! Log-density, energy, score or time score of points, in the user's coordinates.

use crate::data::refuse_non_finite;
use crate::error::{Error, Result};
use crate::files::MappedNpy;
use crate::watch::{Done, Watch};
use crate::words;
use crate::words::Setting;
use diffclf::Error as CoreError;
use diffclf::energy::{Energy, LearnedEnergy};
use diffclf::model::Content;
use diffclf::sample::{Divergence, Flow, Solver};
use std::path::Path;

/// Numbers evaluated at once.
const BLOCK: usize = 1 << 19;

/// Points carried along the flow at once.
const FLOW_BLOCK: usize = 4096;
/// Columns up to which the flow's divergence is exact.
const EXACT_DIVERGENCE: usize = 16;
/// Random directions of the divergence beyond.
const PROBES: usize = 16;

/// What to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// log p.
    LogDensity,
    /// U.
    Energy,
    /// The gradient of log p.
    Score,
    /// The derivative of log p in time.
    TimeScore,
    /// log p by the probability flow: from the scores alone, and so independent of energy and F. For a diffusion.
    FlowLogDensity,
}

/// Values at points.
#[derive(Debug, Clone)]
pub struct Evaluated {
    /// One number, or one row for the score, per point.
    pub values: Vec<f64>,
    /// Shape of the values as an array.
    pub shape: Vec<usize>,
    /// Points.
    pub rows: usize,
    /// The time.
    pub time: f64,
    /// Whether each point lies outside of the data, where a density is extrapolated; none where that was not asked, or the model does not
    /// know.
    pub outside: Option<Vec<bool>>,
}

impl Evaluated {
    /// What to say of the points outside, if there are any.
    pub fn warning(&self) -> Option<String> {
        let marks = self.outside.as_ref()?;
        let first = marks.iter().position(|far| *far)?;
        let count = marks.iter().filter(|far| **far).count();
        Some(format!(
            "{count} of {} points lie outside of the data (first: row {first}, counted from 0): farther out than all of 10,000 draws of what the \
             energy stands on. Values there are extrapolated",
            marks.len()
        ))
    }
}

/// Points to evaluate, read one after the other: they may be more than memory holds.
pub struct Points<'a> {
    /// The file or array, in messages.
    pub name: &'a str,
    /// Shape as an array; the first axis counts the points.
    pub shape: &'a [usize],
    /// Writes points, from this one on as many as fit.
    pub read: &'a dyn Fn(usize, &mut [f64]),
    /// Whether to tell those outside of the data, at one time for all.
    pub mark: bool,
}

/// Evaluates a model at the points of a .npy file, at a time or at its smallest one. The file may be larger than memory.
pub fn evaluate_points(
    quantity: Quantity,
    model: (&Content, &LearnedEnergy),
    points: &Path,
    time: Option<f64>,
    watch: &dyn Watch,
) -> Result<Done<Evaluated>> {
    let mapped = MappedNpy::open(points)?;
    let view = mapped.view()?;
    let rows = Points {
        name: &points.display().to_string(),
        shape: view.shape(),
        read: &|first, out| {
            for (k, point) in out.chunks_exact_mut(view.dim()).enumerate() {
                view.copy_row_f64(first + k, point);
            }
        },
        mark: true,
    };
    let time = time.unwrap_or(model.0.spec.grid.t_min());
    evaluate_rows(quantity, model, &rows, &[time], watch)
}

/// Evaluates a model at points: `times` holds one time for all, or one for each.
pub fn evaluate_rows(
    quantity: Quantity,
    (content, learned): (&Content, &LearnedEnergy),
    points: &Points<'_>,
    times: &[f64],
    watch: &dyn Watch,
) -> Result<Done<Evaluated>> {
    let spec = &content.spec;
    let (low, high) = (spec.grid.t_min(), spec.grid.t_max());
    if let Some(time) = times.iter().find(|time| !(low..=high).contains(*time)) {
        return Err(Error::Refused(words!(
            Setting::new("time"),
            " is ",
            time,
            ", but the model was trained for times from ",
            low,
            " (nearest to the data) to ",
            high,
            "; choose one of them"
        )));
    }
    let (count, dim) = (points.shape[0], points.shape[1..].iter().product::<usize>());
    let (columns, view) = (content.columns(), content.view());
    if dim != columns {
        return Err(Error::Usage(format!(
            "{}: the points have {dim} coordinates, but the model has {columns}; give points of the kind it was trained on",
            points.name
        )));
    }
    if times.len() != 1 && times.len() != count {
        return Err(Error::Refused(words!(
            Setting::new("time"),
            format!(
                " has {} values for {count} points, expected one, or one for each",
                times.len()
            )
        )));
    }
    let energy = content.in_data_coordinates(learned);
    let (width, shape) = match quantity {
        Quantity::Score => (columns, points.shape),
        _ => (1, &points.shape[..1]),
    };
    let mut values = vec![0.0; count * width];
    let rows = match quantity {
        Quantity::FlowLogDensity => FLOW_BLOCK,
        _ => (BLOCK / spec.dim).max(1),
    };
    let outside = match times {
        [time] if points.mark => learned.outside(*time),
        _ => None,
    };
    let mut marks = outside.as_ref().map(|_| Vec::with_capacity(count));
    let mut bar = watch.begin("density", count as u64, 0);
    for (block, out) in values.chunks_mut(rows * width).enumerate() {
        let first = block * rows;
        let mut block = vec![0.0; out.len() / width * columns];
        (points.read)(first, &mut block);
        // All at once, which is quick; one by one only to name the first.
        if !block.iter().all(|x| (*x as f32).is_finite()) {
            for (row, point) in block.chunks_exact(columns).enumerate() {
                refuse_non_finite(Path::new(points.name), first + row, point)?;
            }
        }
        let given = match (&view, quantity) {
            (Some(_), Quantity::Score) => block.clone(),
            _ => Vec::new(),
        };
        block = content.rows_inward(block);
        if let (Some(outside), Some(marks)) = (&outside, &mut marks) {
            let mut inside = block.clone();
            content.standardisation.to_model(&mut inside);
            marks.extend(outside.marks(&inside));
        }
        let times = match times {
            [_] => times,
            times => &times[first..][..out.len() / width],
        };
        match quantity {
            Quantity::LogDensity => energy.log_density(times, &block, out),
            Quantity::Energy => energy.energy(times, &block, out),
            Quantity::Score => match &view {
                Some(view) => {
                    let mut score = vec![0.0; block.len()];
                    energy.score(times, &block, &mut score);
                    out.copy_from_slice(&view.gradients_outward(&given, score));
                }
                None => energy.score(times, &block, out),
            },
            Quantity::TimeScore => energy.time_score(times, &block, out),
            Quantity::FlowLogDensity => match times {
                [time] => by_flow((content, learned), *time, &mut block, out)?,
                _ => {
                    return Err(Error::Refused(words!(
                        Setting::new("time"),
                        " has a value for each point, but the flow starts at one time for all; give one"
                    )));
                }
            },
        }
        // Far away a density may be zero; it is a number.
        if out.iter().any(|value| value.is_nan()) {
            let what = "density, energy or score at these points";
            let time = times.first().copied().unwrap_or(low);
            return Err(Error::Core(CoreError::ModelNotFinite { what, time }));
        }
        bar.set((first + out.len() / width) as u64, &|| "points".into());
    }
    let found = Evaluated {
        values,
        shape: shape.to_vec(),
        rows: count,
        time: times.first().copied().unwrap_or(low),
        outside: marks,
    };
    Ok(Done::new(found, bar))
}

/// The change of variables along the probability flow from `time` to the last level, whose density is known:
/// `log p(t, y) = log p(T, y_T) + int div b dt`.
fn by_flow(
    (content, energy): (&Content, &LearnedEnergy),
    time: f64,
    points: &mut [f64],
    out: &mut [f64],
) -> Result<()> {
    let spec = &content.spec;
    if spec.process.is_interpolant() {
        return Err(Error::Usage(format!(
            "the {} process joins two data sets, and the density of neither end is known; a density by the flow needs a diffusion",
            spec.process.name()
        )));
    }
    let later = spec.grid.times().iter().filter(|t| **t > time);
    let times: Vec<f64> = std::iter::once(&time).chain(later).copied().collect();
    let map = &content.standardisation;
    map.to_model(points);
    let volumes = points
        .chunks_exact(spec.dim)
        .map(|point| map.log_volume_at(point));
    let volumes: Vec<f64> = volumes.collect();
    let flow = Flow {
        energy,
        process: &spec.process,
        velocity: None,
        solver: Solver::Heun,
        divergence: Some(if spec.dim <= EXACT_DIVERGENCE {
            Divergence::Exact
        } else {
            Divergence::Hutchinson { probes: PROBES }
        }),
        seed: 0,
    };
    let growth = if times.len() > 1 {
        flow.carry(&times, 0, points, &mut |_| {})?
    } else {
        None
    };
    let known = spec.last_law()?;
    for (i, (out, point)) in out
        .iter_mut()
        .zip(points.chunks_exact(spec.dim))
        .enumerate()
    {
        let grown = growth.as_ref().map_or(0.0, |growth| growth[i]);
        *out = known(point) - grown - volumes[i];
    }
    Ok(())
}
