//! A reproduction from beginning to end: which cells, those that are finished, the outcome; or the outcome of cells that are kept.

use crate::catalogue::{self, CATALOGUE, Definition, Experiment};
use crate::cell::{CellRecord, Cells, Made, SETTINGS, same_settings};
use crate::outcome::{Outcome, RESULTS};
use crate::{Bench, Manner, Recipe, begins};
use diffclf::format::sha256_of;
use diffclf_report::page::Table;
use diffclf_run::files::{MappedNpy, read_text};
use diffclf_run::machine::Machine;
use diffclf_run::outputs;
use diffclf_run::watch::duration_text;
use diffclf_run::words::Setting;
use diffclf_run::{Error, Result, Watch, words};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Reproduction {
    /// Name of the experiment.
    pub name: String,
    /// How it is computed.
    pub manner: Manner,
    /// Only cells whose name begins like one of these; all if there are none. One may be a share, `2/8`: the second of eight equal parts of the
    /// cells, for jobs that share an experiment.
    pub cells: Vec<String>,
    /// Folder of the results; [`Reproduction::default_folder`] if absent.
    pub output: Option<PathBuf>,
    /// Frames of the user's in place of the experiment's own, where it takes any.
    pub data: Option<PathBuf>,
    /// Folder in which finished cells are kept too, each with the budget, command and machine that made it.
    pub keep: Option<PathBuf>,
    /// Replace files in the folder of the results that are not this experiment's.
    pub force: bool,
}

/// What was found, and where it is written.
pub struct Reproduced {
    /// Tables and verdict.
    pub outcome: Outcome,
    /// Folder of the results.
    pub folder: PathBuf,
}

impl Reproduction {
    /// Computes the cells that are not finished yet, and writes the outcome of all that are.
    pub fn compute(&self, machine: &Machine, watch: Arc<dyn Watch>) -> Result<Reproduced> {
        let definition = self.definition()?;
        let experiment = definition.experiment(self.manner)?;
        let chosen = self.chosen(&*experiment)?;
        let bench = Bench {
            folder: self.folder(),
            pool: machine.pool()?,
            isa: machine.isa()?,
            data: self.data.clone(),
            kernel: machine.kernel.clone(),
            watch: watch.clone(),
        };
        let settings = self.settings(&*experiment)?;
        self.claim(&definition)?;
        let cells = Cells::open(&bench.folder, &settings)?;
        for (k, cell) in chosen.iter().enumerate() {
            if cells.finished(cell)? {
                continue;
            }
            if watch.stopped() {
                return Err(Error::Interrupted(
                    "finished cells are kept; the same command goes on".into(),
                ));
            }
            watch.note(&format!(
                "{}: cell {} of {}, {cell}",
                self.name,
                k + 1,
                chosen.len()
            ));
            let begin = Instant::now();
            let record = experiment.run(cell, &bench)?;
            let made = Made {
                cell: cell.clone(),
                command: self.command(),
                manner: self.manner,
                settings: settings.clone(),
                version: env!("CARGO_PKG_VERSION").into(),
                threads: bench.pool.threads(),
                kernels: bench.isa.to_string(),
            };
            let seconds = begin.elapsed().as_secs_f64();
            cells.write(cell, record.finished(seconds, made))?;
        }
        let found = cells.read(&experiment.cells())?;
        if let Some(folder) = &self.keep {
            for (cell, record) in &found {
                record.keep(folder, &format!("{cell}{}", self.suffix()))?;
            }
        }
        self.write(&definition, &*experiment, &found)
    }

    /// Writes the outcome of the cells that are kept in a folder, without computing any. Those of other budgets are left out; those of
    /// other settings are refused.
    pub fn redraw(&self, kept: &Path) -> Result<Reproduced> {
        let definition = self.definition()?;
        let experiment = definition.experiment(self.manner)?;
        let chosen = self.chosen(&*experiment)?;
        let settings = self.settings(&*experiment)?;
        let mut found = BTreeMap::new();
        for (path, record) in CellRecord::kept(kept)? {
            let Some(made) = &record.made else { continue };
            if made.manner != self.manner || !chosen.contains(&made.cell) {
                continue;
            }
            if !same_settings(&made.settings, &settings) {
                return Err(Error::Usage(format!(
                    "{} was computed with other settings than those of {} today; compute the cell again: {}",
                    path.display(),
                    self.name,
                    made.command
                )));
            }
            found.insert(made.cell.clone(), record);
        }
        if found.is_empty() {
            return Err(Error::Refused(words!(
                kept.display(),
                " holds no finished cell of ",
                self.command(),
                " at this budget; compute some, and keep them with ",
                Setting::to("keep", kept.display().to_string())
            )));
        }
        self.claim(&definition)?;
        self.write(&definition, &*experiment, &found)
    }

    /// Everything that decides the figures, the user's frames included.
    fn settings(&self, experiment: &dyn Experiment) -> Result<serde_json::Value> {
        let settings = experiment.settings()?;
        let Some(path) = &self.data else {
            return Ok(settings);
        };
        if !experiment.takes_frames() {
            return Err(Error::Refused(words!(
                Setting::new("data"),
                format!(
                    " is for experiments on frames that are not public; {} has its own",
                    self.name
                )
            )));
        }
        let mapped = MappedNpy::open(path)?;
        let digest = sha256_of(|writer| Ok(writer.write_all(mapped.bytes())?))?;
        Ok(serde_json::json!({"settings": settings, "frames": digest}))
    }

    /// Takes the folder of the results. Results of this experiment are written anew; what else has their names stays.
    fn claim(&self, definition: &Definition) -> Result<()> {
        let folder = self.folder();
        let ours = || {
            let text = read_text(&folder.join(RESULTS[0])).unwrap_or_default();
            let results = serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default();
            folder.join(SETTINGS).is_file() || results["title"] == definition.title
        };
        if !self.force && !ours() {
            for name in RESULTS {
                outputs::refuse_existing(&folder.join(name), false)?;
            }
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                if entry.path().extension().is_some_and(|kind| kind == "svg") {
                    return Err(Error::Exists { path: entry.path() });
                }
            }
        }
        outputs::plan_folder(&folder)?;
        self.keep.as_deref().map_or(Ok(()), outputs::plan_folder)
    }

    fn definition(&self) -> Result<Definition> {
        let definition = catalogue::find(&self.name)?.definition()?;
        let share = self.manner.share;
        if share > 0.0 && share <= 1.0 {
            Ok(definition)
        } else {
            Err(Error::setting(
                "share",
                share,
                "a number above 0, at most 1",
            ))
        }
    }

    fn chosen(&self, experiment: &dyn Experiment) -> Result<Vec<String>> {
        let all = experiment.cells();
        let ((mut which, mut count), mut names) = ((1, 1), Vec::new());
        for part in &self.cells {
            match parse_share(part)? {
                Some(share) => (which, count) = share,
                None => names.push(part.as_str()),
            }
        }
        let wanted = |cell: &&String| names.is_empty() || names.iter().any(|p| begins(cell, p));
        let nowhere = |name: &&&str| !all.iter().any(|cell| begins(cell, name));
        if let Some(name) = names.iter().find(nowhere) {
            return Err(Error::Usage(format!(
                "no cell of {} begins with {name}; expected whole words of one of {}",
                self.name,
                all.join(", ")
            )));
        }
        let chosen: Vec<String> = all.iter().filter(wanted).cloned().collect();
        // Neighbours share the first stage of their trainings: a job gets neighbours.
        let first = |part: usize| part * chosen.len() / count;
        Ok(chosen[first(which - 1)..first(which)].to_vec())
    }

    fn write(
        &self,
        definition: &Definition,
        experiment: &dyn Experiment,
        found: &BTreeMap<String, CellRecord>,
    ) -> Result<Reproduced> {
        let expected = catalogue::find(&self.name)?.expected()?;
        let outcome = Outcome::new(definition, expected, found, self.manner);
        let pictures = experiment.pictures(found)?;
        let folder = self.folder();
        outcome.write(&folder, definition, &self.command(), &pictures)?;
        Ok(Reproduced { outcome, folder })
    }

    fn folder(&self) -> PathBuf {
        self.output.clone().unwrap_or_else(|| self.default_folder())
    }

    /// Folder of the results if none is named: the budget is part of its name.
    pub fn default_folder(&self) -> PathBuf {
        PathBuf::from("reproduced").join(format!("{}{}", self.name, self.suffix()))
    }

    /// What a budget adds to a name.
    fn suffix(&self) -> String {
        let quick = if self.manner.quick { "-quick" } else { "" };
        let paper = match self.manner.recipe {
            Recipe::Ours => "",
            Recipe::Paper => "-paper",
        };
        let share = match self.manner.share {
            1.0 => String::new(),
            share => format!("-{share}"),
        };
        format!("{quick}{paper}{share}")
    }

    /// The command that gives these results.
    pub fn command(&self) -> String {
        let mut text = format!("diffclf reproduce {}", self.name);
        if self.manner.quick {
            text += " --quick";
        }
        if self.manner.recipe == Recipe::Paper {
            text += " --recipe paper";
        }
        if self.manner.share != 1.0 {
            text += &format!(" --share {}", self.manner.share);
        }
        if let Some(path) = &self.data {
            text += &format!(" --data {}", path.display());
        }
        if !self.cells.is_empty() {
            text += &format!(" --cells {}", self.cells.join(","));
        }
        text
    }
}

/// `2/8`: the second of eight.
fn parse_share(text: &str) -> Result<Option<(usize, usize)>> {
    let Some((which, count)) = text.split_once('/') else {
        return Ok(None);
    };
    match (which.parse(), count.parse()) {
        (Ok(which), Ok(count)) if (1..=count).contains(&which) => Ok(Some((which, count))),
        _ => Err(Error::setting(
            "cells",
            text,
            "a share such as 2/8, from 1/8 to 8/8",
        )),
    }
}

/// All experiments with their cost.
pub fn list() -> Result<Table> {
    let minutes = |minutes: f64| duration_text(Duration::from_secs_f64(60.0 * minutes));
    let rows = CATALOGUE.iter().map(|entry| {
        let Definition {
            title, paper, cost, ..
        } = entry.definition()?;
        Ok(vec![
            entry.name.to_string(),
            minutes(cost.quick),
            minutes(cost.full),
            cost.how.to_string(),
            paper,
            title,
        ])
    });
    Ok(Table {
        caption: "Experiments, with their time on two cores".into(),
        header: [
            "name",
            "quick",
            "full",
            "full time is",
            "in the paper",
            "what",
        ]
        .map(String::from)
        .to_vec(),
        rows: rows.collect::<Result<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use diffclf_run::Silent;

    fn asked(folder: &Path, name: &str, share: f64) -> Reproduction {
        Reproduction {
            name: name.into(),
            manner: Manner {
                quick: true,
                recipe: Recipe::Ours,
                share,
            },
            cells: vec!["score".into(), "posterior".into()],
            output: Some(folder.join("out")),
            data: None,
            keep: Some(folder.join("kept")),
            force: false,
        }
    }

    #[test]
    fn jobs_share_the_cells() {
        let place = tempfile::tempdir().unwrap();
        let mut asked = asked(place.path(), "mog40-dm", 1.0);
        asked.manner.quick = false;
        let definition = asked.definition().unwrap();
        let experiment = definition.experiment(asked.manner).unwrap();
        let mut of = |cells: &[&str]| {
            asked.cells = cells.iter().map(|cell| cell.to_string()).collect();
            asked.chosen(&*experiment)
        };
        let all = of(&[]).unwrap();
        for count in [1, 3, 7] {
            let parts = (1..=count).map(|k| of(&[&format!("{k}/{count}")]).unwrap());
            assert_eq!(parts.flatten().collect::<Vec<_>>(), all);
        }
        let both = of(&["d8-n2", "2/2"]).unwrap();
        assert!(
            both.len() == 3 && both.iter().all(|cell| cell.starts_with("d8-n2")),
            "{both:?}"
        );
        // A name that means nothing is not passed over beside one that does.
        let message = of(&["d8-n2", "d8-n"]).unwrap_err().to_string();
        assert!(message.contains("begins with d8-n;"), "{message}");
        for bad in ["0/3", "4/3", "1/0", "x/2", "/"] {
            let message = of(&[bad]).unwrap_err().to_string();
            assert!(message.contains("2/8"), "{message}");
        }
    }

    /// The page of kept cells is that of the computed ones, but for what rounding leaves of the lines.
    #[test]
    fn kept_cells_are_drawn_again_without_computing() {
        let place = tempfile::tempdir().unwrap();
        let asked = asked(place.path(), "blindness", 1.0);
        let kept = place.path().join("kept");
        asked
            .compute(&Machine::default(), Arc::new(Silent))
            .unwrap();
        let text = |file: &str| std::fs::read_to_string(place.path().join(file)).unwrap();
        let (table, cell) = (text("out/table.md"), text("kept/score-quick.json"));
        assert!(cell.contains("diffclf reproduce blindness --quick") && cell.contains("threads"));
        std::fs::remove_dir_all(place.path().join("out")).unwrap();
        let again = asked.redraw(&kept).unwrap();
        assert_eq!(text("out/table.md"), table);
        assert!(again.outcome.text().contains("relative_rise"));
        assert!(!place.path().join("out/cells").exists());
        // Other budgets and other experiments have no cells there; other settings are refused.
        let full = Reproduction {
            manner: Manner {
                quick: false,
                ..asked.manner
            },
            ..asked.clone()
        };
        let refused = |asked: &Reproduction| asked.redraw(&kept).err().unwrap().to_string();
        assert!(refused(&full).contains("keep = "), "{}", refused(&full));
        let path = kept.join("score-quick.json");
        let altered = cell.replace("\"reference\": ", "\"reference\": 1");
        assert_ne!(altered, cell);
        std::fs::write(&path, altered).unwrap();
        let message = refused(&asked);
        assert!(message.contains("other settings") && message.contains("score-quick"));
    }

    #[test]
    fn files_of_others_stay_and_our_own_are_written_anew() {
        let place = tempfile::tempdir().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut asked = asked(place.path(), "blindness", 1.0);
        (asked.manner.quick, asked.cells, asked.keep) = (false, Vec::new(), None);
        let cells = root.join("blindness/cells");
        asked.manner = CellRecord::kept(&cells).unwrap()[0]
            .1
            .made
            .as_ref()
            .unwrap()
            .manner;
        let out = place.path().join("out");
        std::fs::create_dir(&out).unwrap();
        for name in ["report.html", "results.json", "table.md", "mine.svg"] {
            let path = out.join(name);
            std::fs::write(&path, "precious").unwrap();
            assert!(
                matches!(asked.redraw(&cells), Err(Error::Exists { .. })),
                "{name}"
            );
            assert_eq!(std::fs::read(&path).unwrap(), b"precious");
            std::fs::remove_file(&path).unwrap();
        }
        asked.redraw(&cells).unwrap();
        asked.redraw(&cells).unwrap();
        std::fs::write(out.join("results.json"), "precious").unwrap();
        assert!(asked.redraw(&cells).is_err());
        asked.force = true;
        asked.redraw(&cells).unwrap();
    }

    /// Tables are drawn of kept cells, not written by hand: every experiment has both, and they agree.
    #[test]
    fn results_are_what_the_kept_cells_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for entry in CATALOGUE {
            let name = entry.name;
            let folder = root.join(name);
            let results =
                std::fs::read_to_string(folder.join("results.md")).unwrap_or_else(|error| {
                    panic!("{name}/results.md: {error}; it is table.md of a reproduction")
                });
            let cells = folder.join("cells");
            let kept = CellRecord::kept(&cells).unwrap_or_else(|error| {
                panic!("{name}: {error}; compute with --keep {}", cells.display())
            });
            let manners = kept.iter().map(|(path, record)| {
                let size = std::fs::metadata(path).unwrap().len();
                assert!(
                    size < 100_000,
                    "{}: {size} bytes are no small file",
                    path.display()
                );
                record.made.as_ref().unwrap().manner
            });
            let drawn = manners.map(|manner| {
                let place = tempfile::tempdir().unwrap();
                let asked = Reproduction {
                    name: name.into(),
                    manner,
                    cells: Vec::new(),
                    output: Some(place.path().into()),
                    data: None,
                    keep: None,
                    force: false,
                };
                asked.redraw(&cells).unwrap();
                std::fs::read_to_string(place.path().join("table.md")).unwrap()
            });
            // Budgets beside the one of the table may be kept too.
            let drawn: Vec<String> = drawn.collect();
            assert!(
                drawn.contains(&results),
                "{name}/results.md is not the table of its cells: diffclf reproduce {name} --redraw {}",
                cells.display()
            );
        }
    }
}
