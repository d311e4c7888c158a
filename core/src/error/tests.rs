//! The message of every variant, word for word: what was found, what was expected, what to do.

use super::Error;

/// One test per variant, and a match that does not compile when a variant has none.
macro_rules! messages {
    ($($name:ident, $pattern:pat, $error:expr => $text:expr;)*) => {
        $(
            #[test]
            fn $name() {
                let error = $error;
                assert!(matches!(error, $pattern));
                assert_eq!(error.to_string(), $text);
            }
        )*
        #[test]
        fn every_variant_has_a_test() {
            let error = Error::ModelAltered;
            #[allow(unreachable_patterns)]
            match error {
                $($pattern => (),)*
            }
        }
    };
}

messages! {
    value, Error::Value { .. }, Error::Value {
        name: "eta",
        found: "2".into(),
        expected: "between 0 and 1".into(),
    } => "eta is 2, expected between 0 and 1";
    formula, Error::Formula { .. }, Error::Formula {
        text: "phi >".into(),
        found: "the end".into(),
        expected: "a number".into(),
    } => "in 'phi >' there is the end, expected a number";
    shape, Error::Shape { .. }, Error::Shape {
        what: "the array".into(),
        found: "(3, 4)".into(),
        expected: "(n, 8)".into(),
    } => "the array has shape (3, 4), expected (n, 8)";
    not_npy, Error::NotNpy { .. }, Error::NotNpy { found: "a zip archive".into() } =>
        "expected a .npy file, found a zip archive; write one with numpy.save(path, array.astype('float32'))";
    npy_header, Error::NpyHeader { .. }, Error::NpyHeader { problem: "no shape".into() } =>
        "the .npy header is damaged: no shape; save the array again with numpy.save(path, array)";
    npy_type, Error::NpyType { .. }, Error::NpyType {
        found: "text".into(),
        advice: "save numbers",
    } => "expected an array of real numbers, found text; save numbers";
    npy_size, Error::NpySize { .. }, Error::NpySize {
        shape: "(2, 3)".into(),
        expected: "24 bytes".into(),
        found: 20,
    } => "the .npy header announces shape (2, 3), that is 24 bytes, but 20 bytes follow: the file is damaged or was not \
          written to the end; copy or save it again";
    empty_array, Error::EmptyArray { .. }, Error::EmptyArray { shape: "(0, 3)".into() } =>
        "the array is empty (shape (0, 3)); expected at least one row and one column";
    trajectory, Error::Trajectory { .. }, Error::Trajectory { problem: "it is empty".into() } =>
        "the trajectory cannot be read: it is empty; write it again, or convert it with the program that made it";
    not_model, Error::NotModel { .. }, Error::NotModel { problem: "it is a text".into() } =>
        "not a diffclf model file: it is a text; give the path of a .safetensors file written by diffclf";
    model_length, Error::ModelLength { .. }, Error::ModelLength {
        found: 10,
        expected: "at least 20".into(),
    } => "the model file has 10 bytes, expected at least 20: it is truncated or was not copied to the end; copy it again or \
          use an earlier checkpoint";
    amber, Error::Amber { .. }, Error::Amber {
        what: "topology",
        problem: "it has no atoms".into(),
    } => "the Amber topology cannot be used: it has no atoms";
    unstable, Error::Unstable { .. }, Error::Unstable { replica: 3, time: 0.5 } =>
        "replica 3 of the molecule is not finite after 0.5 ps: take a smaller time step, or start from coordinates of lower energy";
    model_altered, Error::ModelAltered, Error::ModelAltered =>
        "the model file was altered or damaged after it was written (its SHA-256 seal does not match); use an intact copy";
    model_newer, Error::ModelNewer { .. }, Error::ModelNewer {
        found: "7".into(),
        supported: 1,
    } => "the model file has format version 7, this program reads up to 1; update diffclf";
    model_content, Error::ModelContent { .. }, Error::ModelContent { problem: "no weights".into() } =>
        "the model file cannot be used: no weights";
    write, Error::Write(_), Error::from(std::io::Error::other("disk full")) =>
        "writing failed: disk full; check the free space and the permissions of the folder";
    non_finite, Error::NonFinite { .. }, Error::NonFinite {
        step: 12,
        term: "dsm".into(),
        row: Some(3),
    } => "dsm is not finite at step 12, row 3 of the data (counted from 0): lower the learning rate or \
          clip the gradient, and look at that row of the data";
    non_finite_gradient, Error::NonFinite { .. }, Error::NonFinite {
        step: 12,
        term: "gradient of net.wx".into(),
        row: None,
    } => "gradient of net.wx is not finite at step 12: lower the learning rate or clip \
          the gradient";
    model_not_finite, Error::ModelNotFinite { .. }, Error::ModelNotFinite {
        what: "score",
        time: 0.25,
    } => "the model's score is not finite at time 0.25; check that the data or the system are those it was trained on, or train \
          again with a lower learning rate";
    diverged, Error::Diverged { .. }, Error::Diverged {
        sampler: "ddim",
        time: 0.5,
        particle: 9,
    } => "particle 9 of the ddim sampler is not finite after its step from time 0.5: take more steps, or train the model \
          longer";
    expression, Error::Expression { .. }, Error::Expression {
        text: "A and".into(),
        at: 6,
        problem: "expected a name".into(),
    } => "cannot read the composition 'A and', character 6: expected a name";
    poor_overlap, Error::PoorOverlap { .. }, Error::PoorOverlap {
        from: Some(0.5),
        to: 0.4,
        found: 0.0012,
        least: 0.05,
    } => "the overlap of the levels at times 0.5 and 0.4 is 1.20e-3 (conditional effective sample size, a share of the \
          particles), expected at least 0.05: take more levels there, let them be chosen (adaptive levels), or bring the \
          densities nearer to each other";
    bad_energy, Error::BadEnergy { .. }, Error::BadEnergy {
        state: 2,
        sample: 31,
        found: f64::NAN,
        expected: "a number or plus infinity",
    } => "the reduced energy of sample 31 in state 2 (both counted from 0) is NaN, expected a number or plus infinity; check \
          how it was computed, or leave that sample out";
    disconnected, Error::Disconnected { .. }, Error::Disconnected {
        groups: vec![vec![0, 1], vec![2]],
    } => "the samples do not connect states {0, 1} and {2}: the free energies between these groups are undetermined; sample \
          states in between, or take more samples";
    not_converged, Error::NotConverged { .. }, Error::NotConverged {
        method: "MBAR",
        iterations: 200,
        change: 0.5,
        state: 3,
    } => "MBAR did not converge in 200 iterations (last change 5.000e-1, worst at state 3); look at the overlap of that state \
          with the others, or allow a larger tolerance";
}
