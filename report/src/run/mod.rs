//! The page about a run: densities, samples, verdicts, losses, settings, citation.

mod album;
mod citation;
mod columns;
mod film;
mod sections;
mod states;
mod training;
mod view;

use diffclf::energy::exact::ExactPath;
use diffclf::energy::{LearnedEnergy, ModelSpec};
use diffclf::metric::diagnose::{Diagnosis, Verdicts};
use diffclf::metric::{Evaluation, EvaluationSettings};
use diffclf::model::Content;
use diffclf_run::exact::known_path;
use diffclf_run::files::{read_model, read_text};
use diffclf_run::judging::{GivenFiles, Judging, diagnosis_settings, log_lines};
use diffclf_run::machine::Machine;
use diffclf_run::memory::refuse_rows;
use diffclf_run::outputs;
use diffclf_run::run_folder::{CONFIG, LOG};
use diffclf_run::words::Setting;
use diffclf_run::{Error, Result, Watch, words};
use std::path::{Path, PathBuf};
use std::time::Instant;
use view::View;

/// Levels of the comparison with a known system.
const MOST_LEVELS: usize = 64;

/// Points of the larger checks where nobody asks for another number.
const MOST_POINTS: usize = 2048;
/// Fewest, however large the network is.
const FEWEST_POINTS: usize = 128;

/// As many points as a page may take: every one is asked for at all levels. Eight times the price of a perceptron of four layers of 128 is still a matter
/// of seconds; a network over the 462 pairs of 22 atoms has a hundred times that price.
fn affordable(spec: &ModelSpec) -> usize {
    let (width, depth) = spec.network.size();
    let price = spec.network.rows_of_point() * (width * width * depth) as u128;
    let most = MOST_POINTS as u128 * 8 * (128 * 128 * 4) / price.max(1);
    most.clamp(FEWEST_POINTS as u128, MOST_POINTS as u128) as usize
}

/// Everything the page shows.
struct Material {
    content: Content,
    energy: LearnedEnergy<f32>,
    judging: Option<Judging>,
    /// The rows that pictures show, trained on and not.
    shown: Option<(Vec<f64>, Option<Vec<f64>>)>,
    diagnosis: Option<Diagnosis>,
    /// Why there is no diagnosis.
    problem: Option<String>,
    exact: Option<ExactPath>,
    evaluation: Option<Evaluation>,
    about: About,
    view: View,
    seed: u64,
}

/// What is known of a run besides its model, of points or of states.
struct About {
    name: String,
    log: Vec<serde_json::Value>,
    /// The settings file of the run, if it is there.
    config: Option<String>,
    /// How to make the page again.
    command: String,
}

impl About {
    fn of(wish: &Wish<'_>) -> About {
        let name = wish.model.parent().and_then(Path::file_name);
        About {
            name: name.map_or("model".into(), |name| name.to_string_lossy().into_owned()),
            config: read_text(&wish.model.with_file_name(CONFIG)).ok(),
            log: log_lines(&wish.model.with_file_name(LOG)),
            command: wish.command.clone(),
        }
    }
}

/// What is asked for.
pub struct Wish<'a> {
    /// The model file.
    pub model: PathBuf,
    /// Rows to judge it by, of both endpoints, and their weights.
    pub files: GivenFiles<'a>,
    /// Columns to show.
    pub pair: Option<[usize; 2]>,
    /// Points of the larger checks; none for as many as a minute or two allow.
    pub points: Option<usize>,
    /// Seed.
    pub seed: u64,
    /// Threads and kernels.
    pub machine: &'a Machine,
    /// Who follows it.
    pub watch: &'a dyn Watch,
    /// How to make the page again.
    pub command: String,
}

/// Writes the page, and its pictures if a folder is given for them. Returns the diagnosis on it, if there is one.
pub fn write(
    wish: &Wish<'_>,
    output: &Path,
    figures: Option<&Path>,
    force: bool,
) -> Result<Option<Box<dyn Verdicts>>> {
    if let Some(folder) = figures {
        outputs::plan_folder(folder)?;
    }
    let begin = Instant::now();
    let (page, album, diagnosis): (_, _, Option<Box<dyn Verdicts>>) =
        match diffclf_run::states::open(&wish.model)? {
            Some(model) => {
                let material = states::gather(wish, model)?;
                let (page, album) = states::page(&material, begin);
                (
                    page,
                    album,
                    material.diagnosis.map(|found| Box::new(found) as _),
                )
            }
            None => {
                let material = gather(wish)?;
                let (page, album) = sections::page(&material, begin);
                (
                    page,
                    album,
                    material.diagnosis.map(|found| Box::new(found) as _),
                )
            }
        };
    if let Some(folder) = figures {
        album.write(folder, force)?;
    }
    let html = page.html();
    outputs::write(output, force, |writer| {
        Ok(writer.write_all(html.as_bytes())?)
    })?;
    Ok(diagnosis)
}

/// Reads and computes; only the model itself must be there.
fn gather(wish: &Wish<'_>) -> Result<Material> {
    let model = read_model(&wish.model)?;
    let content = model.content.clone();
    let dim = content.spec.dim;
    if let Some(column) = wish
        .pair
        .and_then(|pair| pair.into_iter().find(|k| *k >= content.columns()))
    {
        let dim = content.columns();
        return Err(Error::Refused(words!(
            Setting::new("pair"),
            format!(
                " names column {column}, but the model has {dim} (0 to {})",
                dim - 1
            )
        )));
    }
    let points = wish.points.unwrap_or_else(|| affordable(&content.spec));
    refuse_rows("points", points, dim, 32)?;
    let energy = model.energy(wish.machine.pool()?, wish.machine.isa()?)?;
    let mut progress = wish.watch.begin("report", 3, 0);
    let mut judging = match Judging::gather(&content, wish.files, &wish.model) {
        Ok(judging) => Ok(judging),
        // Data that were named must be there; without any, the page is shorter.
        Err(error) if wish.files.data.iter().any(Option::is_some) => return Err(error),
        Err(error) => Err(error.to_string()),
    };
    if let Ok(judging) = &mut judging {
        judging.generate(
            &content,
            &energy,
            points.min(MOST_POINTS),
            wish.seed,
            &mut |_| {},
        )?;
    }
    progress.set(1, &|| "samples".into());
    let settings = diagnosis_settings(points, wish.seed);
    let diagnosis = judging.as_ref().map_err(String::clone).and_then(|judging| {
        let found = judging.diagnosis(&content, &energy, settings, &mut |_| {});
        found.map_err(|error| error.to_string())
    });
    progress.set(2, &|| "checks".into());
    let exact = known_path(&content)?;
    let evaluation = match &exact {
        Some(exact) => {
            let levels = content.spec.grid.levels().min(MOST_LEVELS);
            let settings = EvaluationSettings {
                samples_per_level: 512,
                classification_samples_per_level: 32,
                seed: wish.seed,
                ..EvaluationSettings::default()
            };
            let grid = content.spec.grid.with_levels(levels)?;
            Some(Evaluation::run(
                &energy,
                exact,
                &grid,
                settings,
                &mut |_, _| {},
            )?)
        }
        None => None,
    };
    progress.finish("done");
    let judging = judging.ok();
    Ok(Material {
        about: About::of(wish),
        view: View::new(&content, judging.as_ref(), wish.pair),
        problem: diagnosis.as_ref().err().cloned(),
        diagnosis: diagnosis.ok(),
        exact,
        evaluation,
        shown: judging.as_ref().map(Judging::all_rows),
        judging,
        energy,
        content,
        seed: wish.seed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use diffclf::network::{EgnnSpec, NetworkSpec};
    use diffclf::process::Process;

    #[test]
    fn dear_networks_are_judged_by_fewer_points() {
        let with = |network| {
            affordable(&ModelSpec {
                network,
                ..ModelSpec::new(63, Process::default())
            })
        };
        let egnn = |particles| NetworkSpec::Egnn(EgnnSpec::new(particles, 32, 3));
        assert_eq!(with(NetworkSpec::default()), MOST_POINTS);
        assert_eq!(with(egnn(5)), MOST_POINTS);
        let few = with(egnn(22));
        assert!((FEWEST_POINTS..300).contains(&few), "{few}");
    }
}
