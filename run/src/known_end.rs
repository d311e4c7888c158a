//! Whether the noise end of a run may be taken for a Gaussian: asked of the rows themselves before an objective takes it so.

use crate::data::Feed;
use crate::error::{Error, Result};
use crate::words;
use crate::words::Setting;
use diffclf::metric::NoiseEnd;
use diffclf::model::Content;
use diffclf::objective::{Ends, ObjectiveName, Term};

/// Largest relative entropy, in nats, of the end to its Gaussian. What is off there goes into F(t) at every level.
const MOST_NATS: f64 = 0.01;

/// Rows that are asked, where so many are affordable.
const ROWS: usize = 20_000;

/// Numbers of the sums over `d^2` products for each row.
const SUMS: usize = 400_000_000;

/// Refuses an objective that takes the last marginal of a diffusion for a Gaussian where it is not.
pub(crate) fn check(content: &Content, feed: &Feed, rows: Option<usize>) -> Result<()> {
    let spec = &content.spec;
    let stages = &content.record.settings.stages;
    let gaussian = |term: &&Term| match term.objective {
        ObjectiveName::KnownDiffclf(objective) => objective.ends != Ends::First,
        _ => false,
    };
    let mut terms = stages.iter().flat_map(|stage| &stage.objectives);
    let Some(term) = terms
        .find(gaussian)
        .filter(|_| !spec.process.is_interpolant())
    else {
        return Ok(());
    };
    let dim = spec.dim;
    // Chance adds d^2 / (4 n) times the square of what is left of the data, at most 0.04^2: with 2 d rows next to nothing.
    let affordable = (SUMS / (dim * dim)).clamp(2 * dim, ROWS);
    let count = rows.unwrap_or(affordable).min(affordable);
    let mut row = vec![0f32; dim];
    let mut points = Vec::with_capacity(count * dim);
    for k in 0..count {
        feed.train.fill(0, k, &mut row);
        points.extend(row.iter().map(|&x| f64::from(x)));
    }
    let time = spec.grid.t_max();
    let end = NoiseEnd::of(&spec.process, time, &points, (&spec.mean, spec.variance))?;
    if end.at_least <= MOST_NATS {
        return Ok(());
    }
    Err(Error::Refused(words!(
        "the objective ",
        term.objective,
        " takes the data at the last time, ",
        time,
        ", for a round Gaussian, but their covariance shows there still: they are ",
        format!("{:.2}", end.at_least),
        " nats from it, and F would be wrong by as much; at most ",
        MOST_NATS,
        " is fine. Extend the noise with ",
        Setting::new("t_max"),
        " or another ",
        Setting::new("process"),
        ", bring the columns to like spreads, or choose ",
        Setting::to("objective", "dsm+diffclf"),
        ", which needs no known end"
    )))
}

#[cfg(test)]
mod tests {
    use crate::data::{Array, DataSet};
    use crate::prepare::Preparation;
    use crate::settings::Settings;
    use diffclf::engine::{Isa, Pool};
    use diffclf::rng::{Purpose, Stream};

    /// 64 columns, the first of which has nearly all of the variance.
    fn rows(spread: f64) -> DataSet {
        let mut stream = Stream::new(4, Purpose::Test, 0, 0);
        let values: Vec<f64> = (0..4000 * 64)
            .map(|i| 0.3 + if i % 64 == 0 { spread } else { 1.0 } * stream.normal())
            .collect();
        DataSet::from_array("rows", Array::from(values), 4000, 64).unwrap()
    }

    fn prepared(data: &DataSet, text: &str) -> Result<(), String> {
        // One scale for all columns and one Gaussian, as in the paper: columns scaled each by its own spread are round.
        let text = format!("{text}\nscale = \"common\"\nbase = \"gaussian\"");
        let settings: Settings = toml::from_str(&text).unwrap();
        let sets = std::slice::from_ref(data);
        Preparation::fresh(
            &settings,
            sets,
            &Pool::new(1),
            Isa::detect(),
            &crate::Silent,
        )
        .map(drop)
        .map_err(|e| e.to_string())
    }

    #[test]
    fn an_end_that_is_not_round_is_refused() {
        // At t = 0.572 the noise is 5.1 times the spread of the data, which is within the limit for round ones.
        let short = "objective = \"dsm+known-diffclf\"\nt_max = 0.572";
        let message = prepared(&rows(40.0), short).unwrap_err();
        // Sums of (r - 1 - ln r) / 2 with r = (1 + v / 26.5) / (1 + 1 / 26.5), v = 61.6 once and 0.0385 63 times: 0.54 nats. Of
        // 4000 rows the variance is known to 2.2 %, which is 0.017 nats.
        let nats = message
            .split(" nats")
            .next()
            .and_then(|text| text.split(' ').next_back());
        let nats: f64 = nats.and_then(|text| text.parse().ok()).unwrap();
        assert!(
            (nats - 0.54).abs() < 4.0 * 0.017 && message.contains("t_max"),
            "{message}"
        );
        assert_eq!(prepared(&rows(1.0), short), Ok(()));
        for fine in [
            "objective = \"dsm+known-diffclf\"",
            "objective = \"dsm+diffclf\"\nt_max = 0.572",
        ] {
            assert_eq!(prepared(&rows(40.0), fine), Ok(()), "{fine}");
        }
    }
}
