//! Kinds of columns: as they are asked for, or recognised where the values leave little doubt.
//!
//! A list names columns by number (counted from 0) or name: `periodic = "phi, psi, 4:360"`, `positive = "2, price"`,
//! `bounded = "5:0:1"`; `none` says that there are none, and keeps them from being looked for.

use crate::data::DataSet;
use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::words;
use crate::words::Setting;
use diffclf::energy::Kind;
use std::f64::consts::{PI, TAU};

/// Rows from which on a kind is recognised.
const FEWEST_ROWS: usize = 200;
/// Both ends of a period must be reached within this share of it.
const REACH: f64 = 0.01;
/// Least share of the values within a twentieth of a period of the seam.
const NEAR_SEAM: f64 = 0.01;
/// Skewness from which on a positive column is one of sizes.
const SKEWED: f64 = 1.0;
/// Where periods begin, and how long they are.
const PERIODS: [[f64; 2]; 4] = [[-PI, TAU], [0.0, TAU], [-180.0, 360.0], [0.0, 360.0]];

/// Kinds of all columns and the settings that tell them; no kinds if all are real.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kinds {
    /// One for each column, or none.
    pub kinds: Vec<Kind>,
    /// `periodic`, `positive` and `bounded` as settings.
    pub told: [String; 3],
}

impl Kinds {
    /// The kinds of a set's columns.
    pub fn of(settings: &Settings, set: &DataSet) -> Result<Kinds> {
        let (sample, dim) = set.sample()?;
        let names = &set.record().columns;
        let mut kinds = vec![Kind::Real; dim];
        let column = |j: usize| {
            sample
                .iter()
                .skip(j)
                .step_by(dim)
                .copied()
                .collect::<Vec<_>>()
        };
        let keys = ["periodic", "positive", "bounded"];
        let asked = [&settings.periodic, &settings.positive, &settings.bounded];
        for (key, list) in keys.into_iter().zip(asked) {
            for (j, numbers) in list
                .iter()
                .flat_map(|list| items(list))
                .map(|item| parse(key, item, names, dim))
                .collect::<Result<Vec<_>>>()?
            {
                let kind = match (key, numbers.as_slice()) {
                    ("periodic", [] | [_]) => periodic(&column(j), numbers.first().copied()),
                    ("positive", []) => Some(Kind::Positive),
                    ("bounded", [low, high]) => Some(Kind::Bounded {
                        low: *low,
                        high: *high,
                    }),
                    _ => None,
                };
                let Some(kind) = kind.filter(Kind::is_sound) else {
                    return Err(wrong(
                        key,
                        &format!("{} for {}", numbers.len(), title(names, j)),
                    ));
                };
                if kinds[j] != Kind::Real {
                    return Err(Error::Refused(words!(
                        title(names, j),
                        " is told to be two things: ",
                        kinds[j].words(),
                        " and ",
                        kind.words(),
                        "; choose one of ",
                        Setting::new("periodic"),
                        ", ",
                        Setting::new("positive"),
                        ", ",
                        Setting::new("bounded")
                    )));
                }
                if let Some((row, x)) = set.first_outside(j, &kind)? {
                    return Err(Error::Refused(words!(
                        Setting::new(key),
                        format!(
                            ": {} is {x} in row {row} (counted from 0), expected {} in every row; leave such rows out, or the column out of the list",
                            title(names, j),
                            kind.words()
                        )
                    )));
                }
                kinds[j] = kind;
            }
        }
        if settings.particles.is_none() && sample.len() / dim.max(1) >= FEWEST_ROWS {
            for (j, kind) in kinds
                .iter_mut()
                .enumerate()
                .filter(|(_, k)| **k == Kind::Real)
            {
                let values = column(j);
                if settings.periodic.is_none()
                    && let Some(found) = recognised_period(&values)
                    && set.first_beyond(j, &found)?.is_none()
                {
                    *kind = found;
                } else if settings.positive.is_none()
                    && set.record().steps.get(j).is_none_or(|step| *step == 0.0)
                    && are_sizes(&values)
                    && set.first_outside(j, &Kind::Positive)?.is_none()
                {
                    *kind = Kind::Positive;
                }
            }
        }
        let told = std::array::from_fn(|k| {
            asked[k]
                .clone()
                .unwrap_or_else(|| list(keys[k], &kinds, names))
        });
        if kinds.iter().all(|kind| *kind == Kind::Real) {
            kinds.clear();
        }
        Ok(Kinds { kinds, told })
    }

    /// Writes them into the settings, where they were not told.
    pub fn fill(&self, settings: &mut Settings) {
        let slots = [
            &mut settings.periodic,
            &mut settings.positive,
            &mut settings.bounded,
        ];
        for (slot, told) in slots.into_iter().zip(&self.told) {
            slot.get_or_insert_with(|| told.clone());
        }
    }
}

/// What to call a column.
pub fn title(names: &[String], column: usize) -> String {
    match names.get(column) {
        Some(name) => format!("column {name}"),
        None => format!("column {column}"),
    }
}

/// The column of a name, or of a number counted from 0.
pub fn column_of(text: &str, names: &[String], dim: usize) -> Option<usize> {
    let named = names.iter().position(|name| name == text);
    named.or_else(|| text.parse().ok().filter(|j| *j < dim))
}

/// The columns that settings name as of a kind of their own.
pub(crate) fn told(settings: &Settings, names: &[String], dim: usize) -> Result<Vec<usize>> {
    let lists = [
        ("periodic", &settings.periodic),
        ("positive", &settings.positive),
        ("bounded", &settings.bounded),
    ];
    let mut columns = Vec::new();
    for (key, list) in lists {
        for item in list.iter().flat_map(|list| items(list)) {
            columns.push(parse(key, item, names, dim)?.0);
        }
    }
    Ok(columns)
}

fn items(list: &str) -> impl Iterator<Item = &str> {
    let items = list.split(',').map(str::trim);
    items.filter(|item| !item.is_empty() && *item != "none")
}

/// A column and its numbers.
fn parse(key: &'static str, item: &str, names: &[String], dim: usize) -> Result<(usize, Vec<f64>)> {
    // A name may have colons itself; as many numbers as possible are taken from its end.
    let mut name = item;
    let mut numbers = Vec::new();
    loop {
        if let Some(column) = column_of(name, names, dim) {
            numbers.reverse();
            return Ok((column, numbers));
        }
        let Some((before, last)) = name.rsplit_once(':') else {
            let known = match names {
                [] => format!("a number from 0 to {}", dim.saturating_sub(1)),
                names => format!("one of {}", names.join(", ")),
            };
            return Err(Error::setting(
                key,
                format!("'{item}'"),
                format!("a list of columns, each {known}{}", example(key)),
            ));
        };
        let Ok(number) = last.trim().parse::<f64>() else {
            return Err(wrong(key, item));
        };
        numbers.push(number);
        name = before.trim();
    }
}

fn example(key: &str) -> &'static str {
    match key {
        "periodic" => ", with its period if that is neither 2 pi nor 360: 0,1:24",
        "bounded" => ", with its bounds: 2:0:1",
        _ => "",
    }
}

fn wrong(key: &'static str, found: &str) -> Error {
    let expected = match key {
        "periodic" => {
            "columns with their periods, 0,1:24; a period may be left out where the values lie within 2 pi or 360"
        }
        "bounded" => "columns with both bounds, the lower first: 2:0:1",
        _ => "columns without numbers: 2,3",
    };
    Error::setting(key, format!("'{found}'"), expected)
}

/// The list of a kind's columns.
fn list(key: &str, kinds: &[Kind], names: &[String]) -> String {
    let name = |j: usize| names.get(j).cloned().unwrap_or_else(|| j.to_string());
    let item = |(j, kind): (usize, &Kind)| match (key, kind) {
        ("periodic", Kind::Periodic { period, .. }) => Some(format!("{}:{period}", name(j))),
        ("positive", Kind::Positive) => Some(name(j)),
        ("bounded", Kind::Bounded { low, high }) => Some(format!("{}:{low}:{high}", name(j))),
        _ => None,
    };
    let items: Vec<String> = kinds.iter().enumerate().filter_map(item).collect();
    if items.is_empty() {
        "none".into()
    } else {
        items.join(",")
    }
}

fn range(values: &[f64]) -> [f64; 2] {
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    let (low, high) = values.iter().fold(ends, |(a, b), x| (a.min(*x), b.max(*x)));
    [low, high]
}

/// A periodic column: of the given period, or of the shortest usual one that its values fit into. Values are given out about zero where some are
/// negative, from zero on otherwise.
fn periodic(values: &[f64], period: Option<f64>) -> Option<Kind> {
    let [least, most] = range(values);
    let period = match period {
        Some(period) => period,
        None => {
            let fits = |[low, period]: &&[f64; 2]| {
                least >= low - REACH * period && most <= low + (1.0 + REACH) * period
            };
            PERIODS.iter().find(fits)?[1]
        }
    };
    let low = if least < 0.0 { -0.5 * period } else { 0.0 };
    Some(Kind::Periodic { low, period })
}

/// A period whose both ends are reached, with rows close to the seam: a column of some other kind hardly ever ends just there on both sides.
pub(crate) fn recognised_period(values: &[f64]) -> Option<Kind> {
    let [least, most] = range(values);
    // What rounding may add, of angles in single precision.
    let slack = 1e-6;
    let found = PERIODS.iter().find(|[low, period]| {
        let inside = least >= low - slack * period && most <= low + (1.0 + slack) * period;
        let reached = least <= low + REACH * period && most >= low + (1.0 - REACH) * period;
        inside && reached
    });
    let [low, period] = *found?;
    let near = |x: &&f64| (**x - low).min(low + period - **x) < 0.05 * period;
    let share = values.iter().filter(near).count() as f64 / values.len() as f64;
    (share >= NEAR_SEAM).then_some(Kind::Periodic { low, period })
}

/// Whether values are sizes: positive, near zero beside the large ones, and much less skewed as logarithms.
fn are_sizes(values: &[f64]) -> bool {
    let [least, _] = range(values);
    if least <= 0.0 {
        return false;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    let logs: Vec<f64> = values.iter().map(|x| x.ln()).collect();
    let (own, of_logs) = (skewness(values), skewness(&logs));
    least < 0.1 * median && own > SKEWED && of_logs.abs() < 0.75 * own
}

fn skewness(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let moment = |power: i32| values.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / count;
    moment(3) / moment(2).powf(1.5)
}

impl DataSet {
    /// The first row whose value of a column its kind does not allow.
    fn first_outside(&self, column: usize, kind: &Kind) -> Result<Option<(usize, f64)>> {
        if !kind.is_curved() {
            return Ok(None);
        }
        self.first_value(column, &|x| !kind.holds(x))
    }

    /// The first row whose value of a column lies beyond the period it is told by.
    fn first_beyond(&self, column: usize, kind: &Kind) -> Result<Option<(usize, f64)>> {
        let Kind::Periodic { low, period } = *kind else {
            return Ok(None);
        };
        let slack = 1e-6 * period;
        self.first_value(column, &|x| x < low - slack || x > low + period + slack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(columns: &[Vec<f64>], names: &[&str]) -> DataSet {
        let rows = columns[0].len();
        let values: Vec<f64> = (0..rows)
            .flat_map(|i| columns.iter().map(move |column| column[i]))
            .collect();
        let names = names.iter().map(|name| (*name).into()).collect();
        DataSet::from_array("a", values, rows, columns.len())
            .unwrap()
            .with_columns(names)
    }

    fn uniform(i: usize, seed: f64) -> f64 {
        (i as f64 * 0.618_033_988_749_895 + seed).fract()
    }

    /// A normal number from two uniform ones.
    fn normal(i: usize) -> f64 {
        let (u, v) = (
            uniform(i, 0.37).max(1e-9),
            (i as f64 * 0.754_877_666).fract(),
        );
        (-2.0 * u.ln()).sqrt() * (TAU * v).cos()
    }

    fn found(settings: &str, set: &DataSet) -> std::result::Result<Kinds, String> {
        let settings: Settings = toml::from_str(settings).unwrap();
        Kinds::of(&settings, set).map_err(|error| error.to_string())
    }

    #[test]
    fn obvious_kinds_are_recognised_and_others_are_not() {
        let n = 3000;
        let angle: Vec<f64> = (0..n).map(|i| TAU * uniform(i, 0.1) - PI).collect();
        let degrees: Vec<f64> = (0..n).map(|i| 360.0 * uniform(i, 0.6)).collect();
        let sizes: Vec<f64> = (0..n).map(|i| (0.8 * normal(i)).exp()).collect();
        let bell: Vec<f64> = (0..n).map(|i| 0.95 * normal(i)).collect();
        let lengths: Vec<f64> = (0..n).map(|i| 1.5 + 0.03 * normal(i)).collect();
        let half: Vec<f64> = (0..n).map(|i| PI * uniform(i, 0.1)).collect();
        let all = set(
            &[angle, degrees, sizes, bell, lengths, half],
            &["phi", "wind", "price", "z", "bond", "theta"],
        );
        let kinds = found("", &all).unwrap();
        assert_eq!(
            kinds.kinds,
            [
                Kind::Periodic {
                    low: -PI,
                    period: TAU
                },
                Kind::Periodic {
                    low: 0.0,
                    period: 360.0
                },
                Kind::Positive,
                Kind::Real,
                Kind::Real,
                Kind::Real
            ]
        );
        assert_eq!(
            kinds.told,
            [format!("phi:{TAU},wind:360"), "price".into(), "none".into()]
        );
        // Told again, they are the same.
        let mut settings = Settings::default();
        kinds.fill(&mut settings);
        assert_eq!(Kinds::of(&settings, &all).unwrap(), kinds);
        let none = found("periodic = \"none\"\npositive = \"none\"", &all).unwrap();
        assert!(none.kinds.is_empty());
    }

    #[test]
    fn lists_name_columns_by_name_or_number() {
        let n = 30;
        let wave: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
        let sizes: Vec<f64> = (0..n).map(|i| 1.0 + uniform(i, 0.2)).collect();
        let all = set(&[wave.clone(), sizes, wave], &["a:b", "c", "d"]);
        let kinds = found("periodic = \"a:b:3.5, 2\"\nbounded = \"c:0:4\"", &all).unwrap();
        assert_eq!(
            kinds.kinds,
            [
                Kind::Periodic {
                    low: -1.75,
                    period: 3.5
                },
                Kind::Bounded {
                    low: 0.0,
                    high: 4.0
                },
                Kind::Periodic {
                    low: -PI,
                    period: TAU
                },
            ]
        );
        for (text, words) in [
            ("periodic = \"e\"", "one of a:b, c, d"),
            ("periodic = \"d:x\"", "periods"),
            ("periodic = \"d:0\"", "periods"),
            ("positive = \"c:3\"", "without numbers"),
            ("bounded = \"c\"", "both bounds"),
            ("bounded = \"c:4:0\"", "both bounds"),
            ("positive = \"d\"", "row 0"),
            ("bounded = \"c:1.5:3\"", "between 1.5 and 3"),
            ("positive = \"c\"\nbounded = \"c:0:4\"", "two things"),
        ] {
            let message = found(text, &all).unwrap_err();
            assert!(message.contains(words), "{text}: {message}");
        }
    }
}
