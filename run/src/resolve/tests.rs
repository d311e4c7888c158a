//! Settings become complete runs: defaults, refusals, what follows from the data.

use super::*;
use diffclf::base::{BaseEnds, MixtureBase, Spread};
use diffclf::energy::Scale;
use diffclf::network::NetworkSpec;

fn settings(text: &str) -> Settings {
    toml::from_str(text).unwrap()
}

/// Given rows with an odd mean and variance.
fn rows(rows: usize) -> Facts {
    Facts {
        rows: Some(rows),
        effective: None,
        given: true,
        has_end: false,
        columns: None,
        kinds: Vec::new(),
        base: None,
        place: Place::Measured(Moments {
            mean: vec![0.5, -2.0, 0.25],
            variance: 2.0,
        }),
    }
}

fn fresh(has_end: bool) -> Facts {
    Facts {
        rows: None,
        given: false,
        has_end,
        ..rows(0)
    }
}

#[test]
fn what_is_resolved_is_complete_and_stays_as_it_is() {
    let wanted = settings("data = \"x.npy\"\nprocess = \"edm\"");
    let resolved = resolve(&wanted, &rows(100_000)).unwrap();
    let text = resolved.settings.to_toml().unwrap();
    for key in [
        "batch = 2048",
        "held_out = 0.05",
        "kind = \"edm\"",
        "sigma_max",
        "rho = 7.0",
    ] {
        assert!(text.contains(key), "{key} is missing in\n{text}");
    }
    // Read back and resolved again, nothing changes, whether the data are measured again or not.
    let again = settings(&text);
    assert_eq!(again, resolved.settings, "{text}");
    assert_eq!(resolve(&again, &rows(100_000)).unwrap(), resolved);
    let mut resumed = rows(100_000);
    resumed.place = Place::Chosen {
        standardisation: resolved.standardisation.clone(),
        moments: Moments {
            mean: resolved.spec.mean.clone(),
            variance: resolved.spec.variance,
        },
    };
    assert_eq!(resolve(&again, &resumed).unwrap(), resolved);
}

#[test]
fn coordinates_are_the_models_or_the_datas() {
    let resolved = resolve(&Settings::default(), &rows(50)).unwrap();
    let measured = Moments {
        mean: vec![0.5, -2.0, 0.25],
        variance: 2.0,
    };
    assert_eq!(resolved.standardisation, measured.coordinates());
    assert_ne!(resolved.standardisation, Coordinates::identity(3));
    assert_eq!(
        (resolved.spec.mean, resolved.spec.variance),
        (vec![0.0; 3], 1.0)
    );
    let resolved = resolve(&settings("standardise = false"), &rows(50)).unwrap();
    assert_eq!(resolved.standardisation, Coordinates::identity(3));
    assert_eq!(resolved.spec.mean, [0.5, -2.0, 0.25]);
    assert_eq!(resolved.spec.variance, 2.0);
}

#[test]
fn few_rows_shrink_the_batch_and_the_network_and_are_still_held_out() {
    let resolved = resolve(&Settings::default(), &rows(59)).unwrap();
    assert_eq!((resolved.train.batch, resolved.train.held_out), (59, None));
    assert_eq!(
        resolved.notices,
        [
            Notice::NothingHeldOut { rows: 59 },
            Notice::BatchLowered { from: 2048, to: 59 }
        ]
    );
    let told: Vec<_> = resolved.notices.iter().map(Notice::to_string).collect();
    assert!(told[0].contains("with held_out)") && told[1].contains("2048 to 59"));
    let share = |count| {
        let resolved = resolve(&Settings::default(), &rows(count)).unwrap();
        let held_out = resolved.train.held_out.map_or(0.0, |rule| rule.share);
        (held_out, resolved.settings.width)
    };
    assert_eq!(share(60), (0.2, Some(32)));
    assert_eq!(share(1000), (0.1, Some(64)));
    assert_eq!(share(50_000), (0.05, Some(128)));
    let resolved = resolve(&settings("held_out = 0.1"), &rows(100)).unwrap();
    assert_eq!((resolved.train.batch, resolved.notices.len()), (90, 1));
    // A system's rows are all trained on, unless asked otherwise.
    let drawn = Facts {
        given: false,
        ..rows(100_000)
    };
    let resolved = resolve(&Settings::default(), &drawn).unwrap();
    assert_eq!(
        (resolved.train.held_out, resolved.settings.held_out),
        (None, Some(0.0))
    );
    assert!(resolved.notices.is_empty());
    assert_eq!(
        (
            held_out_rows(100, 0.1),
            held_out_rows(3, 0.001),
            held_out_rows(3, 0.999)
        ),
        (10, 1, 2)
    );
}

/// A mixture in three dimensions, as a fit would find it.
fn found(finest: f64) -> FoundBase {
    let spread = Spread::Diagonal {
        variances: vec![0.5, 0.2, finest * finest],
        basis: None,
    };
    FoundBase {
        ends: BaseEnds {
            start: MixtureBase::new(3, vec![1.0], vec![0.1, -0.2, 0.0], spread).unwrap(),
            end: None,
        },
        shape: "1 diagonal".into(),
        nats: (-3.0, 0.1),
        finest,
        multiplicity: 1.0,
        kernels_ahead: None,
    }
}

#[test]
fn the_base_decides_objective_and_smallest_time() {
    let with = |text: &str, finest: f64| {
        let facts = Facts {
            base: Some(found(finest)),
            ..rows(5000)
        };
        resolve(&settings(text), &facts).unwrap()
    };
    let resolved = with("", 0.2);
    assert_eq!(resolved.settings.base, Some(BaseKind::Mixture));
    assert_eq!(
        resolved.settings.objective.as_deref(),
        Some("dsm+diffclf+0.5*anchor")
    );
    let (spec, process) = (&resolved.spec, resolved.spec.process);
    assert!((process.noise_level(spec.grid.t_min()) - 0.02).abs() < 2e-4);
    assert!(spec.base.is_some() && spec.validate().is_ok());
    assert!(
        resolved
            .notices
            .iter()
            .any(|n| n.to_string().contains("t_min"))
    );
    // Finer structures: a finer first level, and a second one that does not drown them.
    let fine = with("", 0.005).spec;
    assert!(process.noise_level(fine.grid.times()[1]) <= 0.0025);
    assert_eq!(with("t_min = 0.01", 0.2).spec.grid.t_min(), 0.01);
    // One Gaussian where it is asked for, or where it makes held-out rows more likely: -4.26 nats in three dimensions.
    assert_eq!(with("base = \"gaussian\"", 0.2).spec.base, None);
    let mut facts = Facts {
        base: Some(found(0.2)),
        ..rows(5000)
    };
    facts.base.as_mut().unwrap().nats.0 = -4.3;
    let resolved = resolve(&Settings::default(), &facts).unwrap();
    assert_eq!(
        (resolved.spec.base, resolved.settings.objective.as_deref()),
        (None, Some("dsm+diffclf"))
    );
    // As many components as there are, and kernels that do better: edges, unless something else is asked for.
    let spread = Spread::Diagonal {
        variances: vec![0.3; 48 * 3],
        basis: None,
    };
    let many = MixtureBase::new(3, vec![1.0 / 48.0; 48], vec![0.2; 48 * 3], spread).unwrap();
    let base = facts.base.as_mut().unwrap();
    assert!(crate::edges::likely(&many, 5000, &[]));
    assert!(!crate::edges::likely(&many, 5000, &[0.0, 6.3, 0.0]));
    (base.ends.start, base.nats.0) = (many, -3.0);
    let kept = resolve(&Settings::default(), &facts).unwrap();
    assert!(kept.spec.base.is_some());
    for (ahead, edges) in [(-0.04, false), (0.02, true)] {
        facts.base.as_mut().unwrap().kernels_ahead = Some(ahead);
        let found = resolve(&Settings::default(), &facts).unwrap();
        assert_eq!(found.spec.base.is_none(), edges);
    }
    let served = resolve(&Settings::default(), &facts).unwrap();
    assert!(matches!(served.spec.network, NetworkSpec::Waves { .. }));
    assert_eq!(served.spec.base, None);
    assert_eq!(served.train.batch, 512);
    let again = settings(&served.settings.to_toml().unwrap());
    assert_eq!(resolve(&again, &facts).unwrap().spec, served.spec);
    facts.rows = Some(4000);
    let few = resolve(&settings("base = \"mixture\""), &facts).unwrap();
    assert!(few.spec.base.is_some());
    // Read back, nothing changes.
    let resolved = with("", 0.2);
    let again = settings(&resolved.settings.to_toml().unwrap());
    assert_eq!(again, resolved.settings);
    let outline = outline(&settings("particles = 3"), &rows(100)).unwrap();
    assert_eq!(outline.base, BaseKind::Gaussian);
    assert!(resolve(&settings("particles = 3\nbase = \"mixture\""), &rows(100)).is_err());
}

#[test]
fn columns_are_scaled_each_or_all_alike() {
    let facts = Facts {
        columns: Some(Columns {
            places: vec![[0.5, 1.0], [-2.0, 30.0], [0.25, 0.01]],
            correlations: Some(vec![1.0, 0.6, 0.0, 0.6, 1.0, 0.0, 0.0, 0.0, 1.0]),
            kinds: Vec::new(),
        }),
        ..rows(5000)
    };
    let map = |text: &str| resolve(&settings(text), &facts).map(|found| found.standardisation);
    assert_eq!(map("").unwrap().scale, vec![1.0, 30.0, 0.01].into());
    assert_eq!(map("scale = \"common\"").unwrap().scale, 2f64.sqrt().into());
    assert_eq!(map("scale = \"none\"").unwrap(), Coordinates::identity(3));
    let whitened = map("scale = \"whiten\"").unwrap().scale;
    let rows = vec![vec![1.0], vec![18.0, 24.0], vec![0.0, 0.0, 0.01]];
    assert_eq!(whitened, Scale::Matrix(rows));
    let common = map("particles = 3").unwrap().scale;
    assert!(matches!(common, Scale::Common(_)));
    assert!(map("particles = 3\nscale = \"whiten\"").is_err());
    assert!(map("particles = 3\nscale = \"column\"").is_err());
    assert!(map("standardise = false\nscale = \"column\"").is_err());
}

#[test]
fn stages_follow_the_objective() {
    let train = |text: &str| resolve(&settings(text), &fresh(false)).unwrap().train;
    let score = train("objective = \"dsm\"\nsteps = 7");
    assert_eq!(
        (score.stages.len(), score.stages[0].levels, score.steps()),
        (1, 1, 7)
    );
    let two = train("objective = \"dsm+0.5*binary-diffclf\"\nclip = 0\naverage = 0");
    assert_eq!((two.stages.len(), two.stages[1].levels), (2, 2));
    assert_eq!((two.clip, two.average), (None, None));
    assert_eq!(two.stages[1].objectives[1].weight, 0.5);
}

#[test]
fn what_does_not_fit_is_refused_by_key() {
    let refused = |text: &str, facts: &Facts| resolve(&settings(text), facts).unwrap_err();
    let named = |error: &Error| -> Vec<_> {
        let words = error.words();
        words.settings().map(|setting| setting.name).collect()
    };
    let error = refused("process = \"linear\"", &fresh(false));
    assert_eq!(named(&error), ["end", "end_system"]);
    let error = refused("process = \"vp\"", &fresh(true));
    assert_eq!(named(&error), ["process", "end"]);
    assert!(error.to_string().contains("linear or trigonometric"));
    let error = refused("held_out = 0.1", &fresh(false));
    assert_eq!(named(&error), ["held_out", "samples"]);
    let error = refused("held_out = 1.5", &rows(100));
    assert!(matches!(
        error,
        Error::Setting {
            name: "held_out",
            ..
        }
    ));
    let error = refused("log_every = 0", &rows(100));
    assert!(matches!(
        error,
        Error::Setting {
            name: "log_every",
            ..
        }
    ));
    let ends = resolve(&Settings::default(), &fresh(true)).unwrap();
    assert_eq!(ends.spec.process.name(), "linear");
    let particles = resolve(&settings("particles = 3"), &fresh(false)).unwrap();
    assert_eq!(particles.spec.form, Form::Scalar);
}
