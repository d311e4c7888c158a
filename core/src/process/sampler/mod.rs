//! Drawing the times of a training row: N distinct times, on the grid's levels or between them.
//!
//! One file per sampler, all behind the trait [`DrawTimes`]; [`TimeSampler`] is the serde-tagged choice between them.
//!
//! Adding a sampler: a file with its struct and `impl DrawTimes`, the `mod` and `pub use` lines, a variant of [`TimeSampler`] with its
//! arm in `member`, an entry of [`TimeSampler::ALL`].

mod close;
mod grid;
mod grid_stratified;
mod log_snr_normal;
mod multiscale;
mod stratified;
mod uniform;

pub use close::Close;
pub use grid::Grid;
pub use grid_stratified::GridStratified;
pub use log_snr_normal::LogSnrNormal;
pub use multiscale::Multiscale;
pub use stratified::Stratified;
pub use uniform::Uniform;

use super::{Process, TimeGrid};
use crate::citation::Cites;
use crate::rng::{Purpose, Stream};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// What a time sampler asks a noising process, of numbers or of states.
pub trait Noising {
    /// Name, for errors.
    fn name(&self) -> &'static str;
    /// Whether it joins two data sets, so that there is no one signal and no one noise.
    fn is_interpolant(&self) -> bool;
    /// Logarithm of the squared ratio of signal and noise.
    fn log_snr(&self, time: f64) -> f64;
    /// The time at which noise over signal has this value; `None` for interpolants.
    fn time_of_noise_level(&self, noise_level: f64) -> Option<f64>;
    /// Time in which the density of one coordinate (of this second moment) changes by about itself.
    fn time_scale(&self, time: f64, second_moment: f64) -> f64;
}

impl Noising for Process {
    fn name(&self) -> &'static str {
        self.name()
    }
    fn is_interpolant(&self) -> bool {
        self.is_interpolant()
    }
    fn log_snr(&self, time: f64) -> f64 {
        self.log_snr(time)
    }
    fn time_of_noise_level(&self, noise_level: f64) -> Option<f64> {
        self.time_of_noise_level(noise_level)
    }
    fn time_scale(&self, time: f64, second_moment: f64) -> f64 {
        self.time_scale(time, second_moment)
    }
}

/// What a row of times is drawn for.
pub struct TimeRow<'a> {
    /// The noising process.
    pub process: &'a dyn Noising,
    /// Levels and range of the times.
    pub grid: &'a TimeGrid,
    /// Coordinates of a data row; samplers on the grid do not ask.
    pub dim: usize,
    /// Times in the row.
    pub count: usize,
}

impl TimeRow<'_> {
    /// A time drawn uniformly in log-SNR; `None` for interpolants.
    fn time_by_snr(&self, stream: &mut Stream) -> Option<f64> {
        let (process, grid) = (self.process, self.grid);
        let (low, high) = (process.log_snr(grid.t_max()), process.log_snr(grid.t_min()));
        let log_snr = low + (high - low) * stream.uniform();
        process.time_of_noise_level((-0.5 * log_snr).exp())
    }

    /// A time drawn uniformly between the grid's ends.
    fn time(&self, uniform: f64) -> f64 {
        self.grid.t_min() + (self.grid.t_max() - self.grid.t_min()) * uniform
    }
}

/// One way to draw times. A member draws levels of the grid ([`level`](Self::level)) or times between them
/// ([`time`](Self::time)); draws that are out of range or equal to an earlier one are drawn again.
pub trait DrawTimes {
    /// Name used in files.
    fn name(&self) -> &'static str;
    /// What it does, in one line.
    fn about(&self) -> &'static str;
    /// Whom to cite: keys of BibTeX entries.
    fn cites(&self) -> Cites;
    /// Checks the parameters.
    fn check(&self) -> Result<()> {
        Ok(())
    }
    /// Whether every time is a level of the grid.
    fn on_grid(&self) -> bool {
        false
    }
    /// A level for entry `place` of the row, `first` the level of entry 0 once there is one; `None` for samplers between levels.
    fn level(&self, row: &TimeRow, place: usize, first: u32, stream: &mut Stream) -> Option<u32> {
        let _ = (row, place, first, stream);
        None
    }
    /// A time for the next entry of the row, of which `drawn` are there.
    fn time(&self, row: &TimeRow, drawn: &[f64], stream: &mut Stream) -> Result<f64> {
        let times = row.grid.times();
        let first = drawn
            .first()
            .map_or(0, |&first| times.partition_point(|&t| t < first));
        match self.level(row, drawn.len(), first as u32, stream) {
            Some(level) => Ok(times[level as usize]),
            None => Err(between_levels(self.name())),
        }
    }
}

/// How times are drawn, as written in configuration files: `{"kind": "grid-stratified"}`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum TimeSampler {
    /// Near and far levels compared equally often.
    Multiscale(Multiscale),
    /// Times so near that density ratios have a variance.
    Close(Close),
    /// Levels of the grid, all equally likely.
    Grid(Grid),
    /// One level out of each of N equal parts of the grid.
    GridStratified(GridStratified),
    /// Uniform between the grid's ends.
    Uniform(Uniform),
    /// Uniform in each of N equal parts of the time range.
    Stratified(Stratified),
    /// log sigma is normal.
    LogSnrNormal(LogSnrNormal),
}

impl Default for TimeSampler {
    fn default() -> Self {
        Self::Multiscale(Multiscale::DEFAULT)
    }
}

/// A draw that is refused this often in a row has no realistic chance: the settings are wrong.
const TRIES: usize = 10_000;
/// Rows of the trial.
const TRIAL_ROWS: u64 = 256;
/// Draws that a time may cost on average. Where it is no more, 10,000 draws in a row fail once in 10^43 times.
const MOST_DRAWS: usize = 100;

impl TimeSampler {
    /// Every sampler with its default parameters; the first is the default one.
    pub const ALL: [Self; 7] = [
        Self::Multiscale(Multiscale::DEFAULT),
        Self::Close(Close::DEFAULT),
        Self::Grid(Grid {}),
        Self::GridStratified(GridStratified {}),
        Self::Uniform(Uniform {}),
        Self::Stratified(Stratified {}),
        Self::LogSnrNormal(LogSnrNormal::DEFAULT),
    ];

    fn member(&self) -> &dyn DrawTimes {
        match self {
            Self::Multiscale(member) => member,
            Self::Close(member) => member,
            Self::Grid(member) => member,
            Self::GridStratified(member) => member,
            Self::Uniform(member) => member,
            Self::Stratified(member) => member,
            Self::LogSnrNormal(member) => member,
        }
    }

    /// Whom to cite: keys of BibTeX entries.
    pub fn cites(&self) -> Cites {
        self.member().cites()
    }

    /// Name used in files.
    pub fn name(&self) -> &'static str {
        self.member().name()
    }

    /// What it does, in one line.
    pub fn about(&self) -> &'static str {
        self.member().about()
    }

    /// Whether every time is a level of the grid.
    pub fn on_grid(&self) -> bool {
        self.member().on_grid()
    }

    /// Checks the parameters, and that they suit a process and rows of `n` times and `dim` coordinates.
    pub fn validate(
        &self,
        process: &dyn Noising,
        grid: &TimeGrid,
        dim: usize,
        n: usize,
    ) -> Result<()> {
        self.member().check()?;
        // Trial draws find everything else: too few levels, an interpolant, a normal that misses the grid, or all but misses it.
        let (mut times, mut draws) = (vec![0.0; n], 0);
        for row in 0..TRIAL_ROWS {
            let mut stream = Stream::new(0, Purpose::Test, 0, row);
            draws += self.draw(process, grid, dim, &mut stream, &mut times)?;
        }
        if self.on_grid() || draws <= MOST_DRAWS * n * TRIAL_ROWS as usize {
            return Ok(());
        }
        let each = draws / (n * TRIAL_ROWS as usize);
        Err(self.misses(grid, &format!("of {each} draws but one is")))
    }

    fn misses(&self, grid: &TimeGrid, how_often: &str) -> Error {
        Error::Value {
            name: "time sampler",
            found: format!("{self:?}: {how_often} outside the grid's range or equal to another"),
            expected: format!(
                "times between {} and {}; move the mean or widen the grid",
                grid.t_min(),
                grid.t_max()
            ),
        }
    }

    /// N distinct levels, one for each entry of `out`. Only for samplers [on the grid](Self::on_grid).
    pub fn fill_levels(
        &self,
        process: &dyn Noising,
        grid: &TimeGrid,
        stream: &mut Stream,
        out: &mut [u32],
    ) -> Result<()> {
        check_count(grid, out.len())?;
        let row = TimeRow {
            process,
            grid,
            dim: 0,
            count: out.len(),
        };
        for i in 0..out.len() {
            out[i] = loop {
                let Some(level) = self.member().level(&row, i, out[0], stream) else {
                    return Err(between_levels(self.name()));
                };
                if !out[..i].contains(&level) {
                    break level;
                }
            };
        }
        Ok(())
    }

    /// N distinct times for a row of `dim` coordinates, one for each entry of `out`; the times of the levels
    /// [`Self::fill_levels`] draws from the same stream for samplers on the grid.
    pub fn fill_times(
        &self,
        process: &dyn Noising,
        grid: &TimeGrid,
        dim: usize,
        stream: &mut Stream,
        out: &mut [f64],
    ) -> Result<()> {
        self.draw(process, grid, dim, stream, out).map(|_| ())
    }

    /// The same; returns how many draws it took.
    fn draw(
        &self,
        process: &dyn Noising,
        grid: &TimeGrid,
        dim: usize,
        stream: &mut Stream,
        out: &mut [f64],
    ) -> Result<usize> {
        let mut draws = 0;
        if self.on_grid() {
            check_count(grid, out.len())?;
        }
        let row = TimeRow {
            process,
            grid,
            dim,
            count: out.len(),
        };
        for i in 0..out.len() {
            let mut tries = 0;
            out[i] = loop {
                let time = self.member().time(&row, &out[..i], stream)?;
                draws += 1;
                if (grid.t_min()..=grid.t_max()).contains(&time) && !out[..i].contains(&time) {
                    break time;
                }
                tries += 1;
                if tries > TRIES && !self.on_grid() {
                    return Err(self.misses(grid, &format!("each of {TRIES} draws in a row is")));
                }
            };
        }
        Ok(draws)
    }
}

fn between_levels(name: &str) -> Error {
    let on_grid = TimeSampler::ALL.iter().filter(|member| member.on_grid());
    let names: Vec<_> = on_grid.map(TimeSampler::name).collect();
    Error::Value {
        name: "time sampler",
        found: format!("{name}, which draws times between levels"),
        expected: format!("one of {} where levels are needed", names.join(", ")),
    }
}

fn check_count(grid: &TimeGrid, n: usize) -> Result<()> {
    if n <= grid.levels() {
        return Ok(());
    }
    Err(Error::Value {
        name: "levels of a row",
        found: n.to_string(),
        expected: format!(
            "at most {}, the levels of the time grid, since a row's levels are distinct",
            grid.levels()
        ),
    })
}

/// Refuses a parameter that is not a share.
fn check_share(name: &'static str, share: f64, expected: &str, fits: bool) -> Result<()> {
    if fits {
        return Ok(());
    }
    Err(Error::Value {
        name,
        found: share.to_string(),
        expected: expected.into(),
    })
}

#[cfg(test)]
mod tests;
