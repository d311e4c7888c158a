//! The one closed list of what can go wrong in the library; every message says what was found, what was expected and what to do.

/// Result of a library call.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong in the library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number given by the caller is outside its range.
    #[error("{name} is {found}, expected {expected}")]
    Value {
        /// Which setting.
        name: &'static str,
        /// What was given.
        found: String,
        /// What is allowed.
        expected: String,
    },
    /// An expression over columns cannot be read.
    #[error("in '{text}' there is {found}, expected {expected}")]
    Formula {
        /// The whole of it.
        text: String,
        /// What was found.
        found: String,
        /// What belongs there.
        expected: String,
    },
    /// An array has the wrong shape.
    #[error("{what} has shape {found}, expected {expected}")]
    Shape {
        /// Which array.
        what: String,
        /// Its shape.
        found: String,
        /// The shape it should have.
        expected: String,
    },
    /// The bytes are not a .npy file.
    #[error(
        "expected a .npy file, found {found}; write one with numpy.save(path, array.astype('float32'))"
    )]
    NotNpy {
        /// What the bytes look like.
        found: String,
    },
    /// The header of a .npy file cannot be understood.
    #[error(
        "the .npy header is damaged: {problem}; save the array again with numpy.save(path, array)"
    )]
    NpyHeader {
        /// What is wrong.
        problem: String,
    },
    /// A .npy file holds something else than real numbers.
    #[error("expected an array of real numbers, found {found}; {advice}")]
    NpyType {
        /// What it holds.
        found: String,
        /// How to save something readable.
        advice: &'static str,
    },
    /// A .npy file is shorter or longer than its header says.
    #[error(
        "the .npy header announces shape {shape}, that is {expected}, but {found} bytes follow: the file is damaged \
         or was not written to the end; copy or save it again"
    )]
    NpySize {
        /// Shape in the header.
        shape: String,
        /// Size that follows from it.
        expected: String,
        /// Bytes that follow the header.
        found: usize,
    },
    /// An array without any number.
    #[error("the array is empty (shape {shape}); expected at least one row and one column")]
    EmptyArray {
        /// Its shape.
        shape: String,
    },
    /// The bytes are no frames of atoms.
    #[error(
        "the trajectory cannot be read: {problem}; write it again, or convert it with the program that made it"
    )]
    Trajectory {
        /// What was found.
        problem: String,
    },
    /// The bytes are not a model file or checkpoint.
    #[error(
        "not a diffclf model file: {problem}; give the path of a .safetensors file written by diffclf"
    )]
    NotModel {
        /// What was found.
        problem: String,
    },
    /// A model file ends too early (or goes on too long).
    #[error(
        "the model file has {found} bytes, expected {expected}: it is truncated or was not copied to the end; copy \
         it again or use an earlier checkpoint"
    )]
    ModelLength {
        /// Bytes at hand.
        found: usize,
        /// Bytes announced.
        expected: String,
    },
    /// The seal of a model file does not match its content.
    #[error(
        "the model file was altered or damaged after it was written (its SHA-256 seal does not match); use an intact \
         copy"
    )]
    ModelAltered,
    /// A model file of a later release.
    #[error(
        "the model file has format version {found}, this program reads up to {supported}; update diffclf"
    )]
    ModelNewer {
        /// Its version.
        found: String,
        /// The newest version understood here.
        supported: u32,
    },
    /// A model file whose seal is right but whose content is not what the reader needs.
    #[error("the model file cannot be used: {problem}")]
    ModelContent {
        /// What is missing or contradictory, and what to do.
        problem: String,
    },
    /// A file of Amber's that cannot be used.
    #[error("the Amber {what} cannot be used: {problem}")]
    Amber {
        /// Topology or coordinates.
        what: &'static str,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// Molecular dynamics left the finite numbers.
    #[error(
        "replica {replica} of the molecule is not finite after {time} ps: take a smaller time step, or start from coordinates of \
         lower energy"
    )]
    Unstable {
        /// Which copy.
        replica: usize,
        /// Time since the start, ps.
        time: f64,
    },
    /// A writer failed.
    #[error("writing failed: {0}; check the free space and the permissions of the folder")]
    Write(#[from] std::io::Error),
    /// A loss or gradient is not a finite number.
    #[error(
        "{term} is not finite at step {step}{}: lower the learning rate or clip the gradient{}",
        row.map_or(String::new(), |r| format!(", row {r} of the data (counted from 0)")),
        row.map_or("", |_| ", and look at that row of the data")
    )]
    NonFinite {
        /// Training step.
        step: u64,
        /// Objective or parameter.
        term: String,
        /// Row of the data, if one is to blame and is not drawn afresh.
        row: Option<usize>,
    },
    /// A model gives something that is not a number.
    #[error(
        "the model's {what} is not finite at time {time}; check that the data or the system are those it was trained on, or train \
         again with a lower learning rate"
    )]
    ModelNotFinite {
        /// Which of its outputs.
        what: &'static str,
        /// At which time.
        time: f64,
    },
    /// A particle of a sampler left the finite numbers.
    #[error(
        "particle {particle} of the {sampler} sampler is not finite after its step from time {time}: take more steps, or train \
         the model longer"
    )]
    Diverged {
        /// Which sampler.
        sampler: &'static str,
        /// Time from which the step went.
        time: f64,
        /// Number of the particle.
        particle: u64,
    },
    /// A composition that cannot be read.
    #[error("cannot read the composition '{text}', character {at}: {problem}")]
    Expression {
        /// The text.
        text: String,
        /// Place of the problem, counted from 1.
        at: usize,
        /// What is wrong, and what to write.
        problem: String,
    },
    /// Neighbouring levels of a path have too little in common.
    #[error(
        "the overlap {} is {found:.2e} (conditional effective sample size, a share of the particles), expected at least {least}: \
         take more levels there, let them be chosen (adaptive levels), or bring the densities nearer to each other",
        from.map_or(format!("of the start and the level at time {to}"), |from| format!("of the levels at times {from} and {to}"))
    )]
    PoorOverlap {
        /// Time of the level before; `None` for the start.
        from: Option<f64>,
        /// Time of the level that was not reached.
        to: f64,
        /// The overlap.
        found: f64,
        /// The least that is allowed.
        least: f64,
    },
    /// A reduced energy that no state can have.
    #[error(
        "the reduced energy of sample {sample} in state {state} (both counted from 0) is {found}, expected {expected}; check how \
         it was computed, or leave that sample out"
    )]
    BadEnergy {
        /// Which state.
        state: usize,
        /// Which sample.
        sample: usize,
        /// What was found.
        found: f64,
        /// What is allowed there.
        expected: &'static str,
    },
    /// Groups of states without common samples: nothing ties their free energies together.
    #[error(
        "the samples do not connect states {}: the free energies between these groups are undetermined; sample states in \
         between, or take more samples",
        group_text(groups)
    )]
    Disconnected {
        /// The groups, by number of state.
        groups: Vec<Vec<usize>>,
    },
    /// An iteration did not reach its tolerance.
    #[error(
        "{method} did not converge in {iterations} iterations (last change {change:.3e}, worst at state {state}); look at the \
         overlap of that state with the others, or allow a larger tolerance"
    )]
    NotConverged {
        /// Which iteration.
        method: &'static str,
        /// How many steps were taken.
        iterations: usize,
        /// The last step.
        change: f64,
        /// The state that changed most.
        state: usize,
    },
}

/// `{0, 1} and {2, 3}`.
fn group_text(groups: &[Vec<usize>]) -> String {
    let text = |group: &Vec<usize>| {
        let states: Vec<String> = group.iter().map(usize::to_string).collect();
        format!("{{{}}}", states.join(", "))
    };
    groups.iter().map(text).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests;
