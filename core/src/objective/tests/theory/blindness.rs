//! Blindness: other mixture weights barely move the losses of scores and time scores, and move that of DiffCLF.

use super::*;
use crate::metric::{Blindness, blindness};

fn modes(weight: f64) -> ExactPath {
    let start = mixture(1, [weight, 1.0 - weight], &[-1.8, 1.8], [0.02, 0.03]);
    ExactPath::new(vp(), start, None).unwrap()
}

#[test]
fn other_mixture_weights_are_seen_by_classification_only() {
    let reference = modes(2.0 / 3.0);
    // The paper's figure: the first class at time 0.1, the others at 0.5 and 0.7.
    let times = [0.1, 0.5, 0.7];
    let same = blindness(&reference, &modes(2.0 / 3.0), &times, 2000, 1).unwrap();
    assert_eq!(
        [same.score, same.time_score, same.classification].map(|e| e.mean),
        [0.0; 3]
    );
    for weight in [0.2, 0.4, 0.8] {
        let Blindness {
            score,
            time_score,
            fokker_planck,
            classification,
            score_size,
            time_score_size,
            ..
        } = blindness(&reference, &modes(weight), &times, 20_000, 1).unwrap();
        let what =
            format!("weight {weight}: {score} {time_score} {fokker_planck} {classification}");
        assert!(score.mean < 2e-3 * score_size.mean, "{what}");
        assert!(time_score.mean < 2e-3 * time_score_size.mean, "{what}");
        assert!(fokker_planck.mean < 1e-6 * time_score_size.mean, "{what}");
        assert!(classification.mean > 4.0 * classification.error, "{what}");
        assert!(classification.mean > 1e-3, "{what}");
    }
}

/// CtSM and DSM differ from the divergences of time score and score by constants, so they are as blind.
#[test]
fn conditional_losses_move_by_the_divergences() {
    let reference = modes(2.0 / 3.0);
    let other = modes(0.3);
    let spec = spec_of(&reference);
    let here = Changed {
        path: &reference,
        change: &nothing,
        speed: 1.0,
    };
    let there = Changed {
        path: &other,
        change: &nothing,
        speed: 1.0,
    };
    for text in ["dsm", "ctsm", "fokker-planck(laplacian=exact)"] {
        let objective: ObjectiveName = text.parse().unwrap();
        let mut sums = [0.0; 3];
        let rows = 500;
        for number in 0..rows {
            let loss = |model: &Changed<'_>| {
                let mut row = row(&spec, &reference, model, number);
                row.times = vec![0.06, 0.12];
                row.loss(&objective).0
            };
            let (a, b) = (loss(&here), loss(&there));
            sums[0] += a;
            sums[1] += b - a;
            sums[2] += (b - a).powi(2);
        }
        let n = rows as f64;
        let (size, moved) = (sums[0] / n, sums[1] / n);
        let sigma = ((sums[2] / n - moved * moved) / n).sqrt();
        assert!(
            moved.abs() < 1e-3 * size.abs().max(1.0) + 4.0 * sigma,
            "{text}: {moved} of {size}"
        );
    }
}
