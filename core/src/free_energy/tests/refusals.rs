//! Input that determines nothing is refused, with the states that are the trouble.

use crate::Error;
use crate::free_energy::*;
use crate::system::HarmonicLadder;

fn solve(u: &[f64], counts: &[usize]) -> Result<Vec<f64>, Error> {
    let matrix = Matrix::new(u, counts.len())?;
    Mbar::solve(&matrix, counts, &MbarSettings::default()).map(|mbar| mbar.log_z())
}

#[test]
fn states_apart_are_named() {
    let springs = vec![4.0; 5];
    let ladder = HarmonicLadder::new(1, vec![0.0, 90.0, 0.7, 91.0, 1.2], springs).unwrap();
    let (_, u) = ladder.sample(&[50; 5], 1);
    match solve(&u, &[50; 5]) {
        Err(Error::Disconnected { groups }) => assert_eq!(groups, [vec![0, 2, 4], vec![1, 3]]),
        other => panic!("{other:?}"),
    }
    // Forbidden in each other's state.
    let inf = f64::INFINITY;
    let wall = [0.0, 0.0, inf, inf, inf, inf, 0.0, 0.0];
    assert!(matches!(
        solve(&wall, &[2, 2]),
        Err(Error::Disconnected { .. })
    ));
    assert!(matches!(
        bar(&[inf, inf], &[1.0, 2.0]),
        Err(Error::Disconnected { .. })
    ));
    assert!(matches!(
        bar(&[900.0, 901.0], &[900.0, 902.0]),
        Err(Error::Disconnected { .. })
    ));
    assert!(matches!(
        perturbation(&[inf, inf], false),
        Err(Error::Disconnected { .. })
    ));
}

#[test]
fn energies_that_cannot_be_are_named() {
    let mut u = vec![0.5; 12];
    u[10] = f64::NAN;
    match solve(&u, &[2, 1, 1]) {
        Err(Error::BadEnergy { state, sample, .. }) => assert_eq!((state, sample), (2, 2)),
        other => panic!("{other:?}"),
    }
    u[10] = f64::NEG_INFINITY;
    assert!(matches!(
        solve(&u, &[2, 1, 1]),
        Err(Error::BadEnergy { .. })
    ));
    // Infinite in the state it was drawn from.
    u[10] = 0.5;
    u[6] = f64::INFINITY;
    match solve(&u, &[2, 1, 1]) {
        Err(Error::BadEnergy { state, sample, .. }) => assert_eq!((state, sample), (1, 2)),
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        bar(&[1.0, f64::NAN], &[1.0, 2.0]),
        Err(Error::BadEnergy { .. })
    ));
    assert!(perturbation(&[1.0], false).is_err());
}

#[test]
fn counts_and_settings_must_fit() {
    let u = vec![0.5; 12];
    for counts in [
        &[2, 2][..],
        &[2, 1, 2],
        &[0, 0, 0],
        &[usize::MAX, usize::MAX, 6],
    ] {
        let matrix = Matrix::new(&u, 3).unwrap();
        let refused = Mbar::solve(&matrix, counts, &MbarSettings::default());
        assert!(matches!(refused, Err(Error::Value { .. })), "{counts:?}");
    }
    let matrix = Matrix::new(&u, 3).unwrap();
    let settings = MbarSettings {
        tolerance: 0.0,
        ..MbarSettings::default()
    };
    assert!(Mbar::solve(&matrix, &[2, 1, 1], &settings).is_err());
    let mbar = Mbar::solve(&matrix, &[2, 1, 1], &MbarSettings::default()).unwrap();
    assert!(mbar.expectations(Ensemble::State(3), &[]).is_err());
    assert!(mbar.expectations(Ensemble::State(0), &[&[1.0]]).is_err());
    assert!(mbar.perturbed(&Matrix::new(&[0.0; 3], 1).unwrap()).is_err());
    let forbidden = [f64::INFINITY; 4];
    assert!(
        mbar.perturbed(&Matrix::new(&forbidden, 1).unwrap())
            .is_err()
    );
    assert!(
        mbar.surface(Ensemble::State(0), &[0.0; 4], &[1.0, 0.0])
            .is_err()
    );
    assert!(
        mbar.surface(Ensemble::State(0), &[0.0; 4], &[1.0, 2.0])
            .is_err()
    );
    assert!(
        mbar.bootstrap(1, &[Blocks::SINGLE; 3], 0).is_err()
            && mbar.bootstrap(5, &[Blocks::SINGLE; 2], 0).is_err()
    );
}

/// Newton steps that may not happen are reported with the state that still moves.
#[test]
fn an_iteration_cut_short_says_so() {
    let ladder = HarmonicLadder::new(1, vec![0.0, 2.5, 5.0], vec![1.0, 4.0, 9.0]).unwrap();
    let (_, u) = ladder.sample(&[30; 3], 1);
    let settings = MbarSettings {
        max_iterations: 1,
        ..MbarSettings::default()
    };
    let matrix = Matrix::new(&u, 3).unwrap();
    let refused = Mbar::solve(&matrix, &[30; 3], &settings);
    assert!(matches!(refused, Err(Error::NotConverged { .. })));
}
