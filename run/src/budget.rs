//! A budget of time: as many steps as fit into it, by the pace of the first few. The steps go into the run's settings, so that the run can be
//! resumed and repeated like any other.

use crate::company;
use crate::error::{Error, Result};
use crate::prepare::Preparation;
use crate::settings::Settings;
use crate::words;
use crate::words::Setting;
use diffclf::engine::{Isa, Pool};
use diffclf::train::{StepReport, TrainSettings, Trainer};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Seconds for which the pace of a stage is measured, and fewest steps.
const MEASURED: f64 = 0.7;
const FEWEST_MEASURED: u32 = 3;
/// Share of the budget that is left for what comes after the last step.
const AFTERWARDS: f64 = 0.12;
/// Fewest steps of a stage.
const FEWEST_STEPS: u64 = 40;

/// A span of time, in seconds or with a unit: 90, 90s, 10m, 1.5h.
pub fn parse_time(text: &str) -> Result<Duration> {
    let text = text.trim();
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        _ => (text, 1.0),
    };
    let seconds = number.trim().parse::<f64>().map(|x| x * unit);
    match seconds {
        Ok(seconds) if (1.0..=3.2e7).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(Error::setting(
            "time",
            format!("'{text}'"),
            "a time from a second to a year: 90s, 10m, 1.5h",
        )),
    }
}

impl Preparation {
    /// Fits the steps of all stages into what is left of a budget that began at `begin`; tells what was chosen.
    pub fn fit_into(
        &mut self,
        budget: Duration,
        begin: Instant,
        pool: &Arc<Pool>,
        isa: Isa,
    ) -> Result<String> {
        let mut settings = self.settings.clone();
        let mut train = self.content.record.settings.clone();
        let text = fit_steps(&mut settings, &mut train, (budget, begin), &|train| {
            self.trainer_of(train, pool.clone(), isa)
        })?;
        (self.settings, self.content.record.settings) = (settings, train);
        Ok(text)
    }
}

/// Fits the steps of all stages into what is left of a budget, by the pace of trainers of each stage alone; tells what was chosen.
pub(crate) fn fit_steps<O: Clone>(
    settings: &mut Settings,
    train: &mut TrainSettings<O>,
    (budget, begin): (Duration, Instant),
    trainer_of: &dyn Fn(&TrainSettings<O>) -> Result<Trainer>,
) -> Result<String> {
    if settings.more_steps.is_some() {
        return Err(Error::Refused(words!(
            Setting::new("more_steps"),
            " counts steps, and ",
            Setting::new("time"),
            " chooses them; leave one of them out"
        )));
    }
    let mut paces = Vec::with_capacity(train.stages.len());
    for stage in 0..train.stages.len() {
        let mut alone = train.clone();
        alone.stages = vec![train.stages[stage].clone()];
        alone.stages[0].steps = u64::MAX;
        alone.held_out = None;
        paces.push(seconds_per_step(trainer_of(&alone)?)?);
    }
    let planned: f64 = train
        .stages
        .iter()
        .zip(&paces)
        .map(|(stage, pace)| stage.steps as f64 * pace)
        .sum();
    let left = (1.0 - AFTERWARDS) * budget.as_secs_f64() - company::elapsed(begin).as_secs_f64();
    let share = (left / planned).max(0.0);
    let steps = |steps: u64| ((steps as f64 * share) as u64).max(FEWEST_STEPS);
    for stage in &mut train.stages {
        stage.steps = steps(stage.steps);
    }
    let counts: Vec<u64> = train.stages.iter().map(|stage| stage.steps).collect();
    let last = counts.last().copied().unwrap_or(0);
    settings.steps = Some(last);
    settings.score_steps = Some(match counts.as_slice() {
        [first, _] => *first,
        _ => 0,
    });
    if let Some(rule) = &mut train.held_out {
        // As for any other number of steps.
        rule.every = (last / (4 * rule.patience.max(1))).clamp(10, 1000);
        settings.held_out_every = Some(rule.every);
    }
    let text: Vec<String> = counts
        .iter()
        .zip(&paces)
        .map(|(steps, pace)| format!("{steps} steps at {pace:.3} s"))
        .collect();
    Ok(format!("fitted into the time: {}", text.join(", then ")))
}

/// How long a step takes here.
fn seconds_per_step(mut trainer: Trainer) -> Result<f64> {
    let mut report = StepReport::default();
    // The first step builds what the others use.
    trainer.advance(&mut report)?;
    let (begin, mut count) = (Instant::now(), 0);
    while count < FEWEST_MEASURED || company::elapsed(begin).as_secs_f64() < MEASURED {
        trainer.advance(&mut report)?;
        count += 1;
    }
    Ok(company::elapsed(begin).as_secs_f64() / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DataSet;

    #[test]
    fn times_have_units() {
        for (text, seconds) in [
            ("90", 90.0),
            ("90s", 90.0),
            ("10m", 600.0),
            (" 1.5h", 5400.0),
        ] {
            assert_eq!(parse_time(text).unwrap().as_secs_f64(), seconds);
        }
        for text in ["", "m", "0", "-3m", "1e99", "10x", "nan"] {
            let message = parse_time(text).unwrap_err().to_string();
            assert!(message.contains("10m"), "{message}");
        }
    }

    #[test]
    fn steps_follow_the_time_and_stand_in_the_settings() {
        let values: Vec<f64> = (0..800).map(|i| (f64::from(i) * 0.7).sin()).collect();
        let sets = [DataSet::from_array("a", values, 400, 2).unwrap()];
        let settings: Settings =
            toml::from_str("width = 8\ndepth = 2\nbatch = 16\ngrid_levels = 16\nfeatures = 4")
                .unwrap();
        let pool = Arc::new(Pool::new(1));
        let isa = Isa::detect();
        let mut found = Preparation::fresh(&settings, &sets, &pool, isa, &crate::Silent).unwrap();
        let text = found
            .fit_into(Duration::from_secs(20), Instant::now(), &pool, isa)
            .unwrap();
        assert!(text.contains("steps at"), "{text}");
        let stages = &found.content.record.settings.stages;
        assert_eq!(found.settings.score_steps, Some(stages[0].steps));
        assert_eq!(found.settings.steps, Some(stages[1].steps));
        // Half as many of the first as of the second, as without a budget.
        let ratio = stages[1].steps as f64 / stages[0].steps as f64;
        assert!(
            (1.8..2.2).contains(&ratio) || stages[0].steps == FEWEST_STEPS,
            "{text}"
        );
        // Nothing left: the fewest.
        let long_ago = Instant::now().checked_sub(Duration::from_secs(60)).unwrap();
        found
            .fit_into(Duration::from_secs(20), long_ago, &pool, isa)
            .unwrap();
        assert_eq!(found.settings.steps, Some(FEWEST_STEPS));
    }
}
