//! Is the model any good? A verdict without ground truth.

use crate::error::{Error, Result};
use crate::judging::{GivenFiles, Judging, diagnosis_settings};
use crate::memory::refuse_rows;
use crate::watch::Watch;
use diffclf::energy::LearnedEnergy;
use diffclf::metric::diagnose::{Diagnosis, DiagnosisSettings, Verdict, Verdicts};
use diffclf::model::Content;
use std::path::{Path, PathBuf};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Diagnosing {
    /// The model's file; the log beside it is read too.
    pub model: PathBuf,
    /// Rows to judge it by, of both endpoints.
    pub data: [Option<PathBuf>; 2],
    /// Weights of those rows.
    pub weights: [Option<PathBuf>; 2],
    /// Points of the larger checks.
    pub points: usize,
    /// Samples to generate and compare with the data, 0 for none.
    pub generate: usize,
    /// Seed.
    pub seed: u64,
}

/// The checks, and what they were made with.
#[derive(Debug, Clone)]
pub struct Diagnosed<D = Diagnosis> {
    /// The checks, of points or of states.
    pub diagnosis: D,
    /// How much was computed.
    pub settings: DiagnosisSettings,
    /// Where the rows came from, in words.
    pub origin: String,
    /// The rows were trained on: there are no others.
    pub only_trained: bool,
}

impl Diagnosing {
    /// Makes the checks.
    pub fn run(
        &self,
        content: &Content,
        energy: &LearnedEnergy,
        watch: &dyn Watch,
    ) -> Result<Diagnosed> {
        refuse_rows("points", self.points, content.spec.dim, 32)?;
        refuse_rows("generate", self.generate, content.spec.dim, 16)?;
        let files = GivenFiles::of(&self.data, &self.weights);
        let judging = Judging::gather(content, files, Path::new(&self.model))?;
        self.judge(judging, content, energy, watch)
    }

    /// Makes the checks by rows that are gathered.
    pub fn judge(
        &self,
        mut judging: Judging,
        content: &Content,
        energy: &LearnedEnergy,
        watch: &dyn Watch,
    ) -> Result<Diagnosed> {
        let settings = diagnosis_settings(self.points, self.seed);
        let mut bar = watch.begin("diagnose", Diagnosis::PARTS as u64 + 1, 0);
        judging.generate(content, energy, self.generate, self.seed, &mut |_| {
            bar.set(0, &|| "samples".into());
        })?;
        let diagnosis = judging.diagnosis(content, energy, settings, &mut |done| {
            bar.set(1 + done as u64, &|| "checks".into());
        })?;
        bar.finish("done");
        Ok(Diagnosed {
            diagnosis,
            settings,
            origin: judging.origin,
            only_trained: judging.only_trained,
        })
    }
}

impl<D: Verdicts> Diagnosed<D> {
    /// Checks with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let checks = self.diagnosis.checks().iter();
        checks.filter(|check| check.verdict == verdict).count()
    }

    /// The verdict as the outcome of a command.
    pub fn verdict(&self) -> Result<()> {
        let all = self.diagnosis.checks().len();
        match self.diagnosis.verdict() {
            Verdict::Fail => Err(Error::Failed(format!(
                "the model failed {} of {all} checks",
                self.count(Verdict::Fail)
            ))),
            Verdict::Warn => Err(Error::Warned(format!(
                "{} of {all} checks gave a warning",
                self.count(Verdict::Warn)
            ))),
            _ => Ok(()),
        }
    }
}
