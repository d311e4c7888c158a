//! Simulations as a whole: keeping, resuming, chains that leave.

use super::*;
use crate::Silent;
use diffclf::energy::compose::Expression;
use diffclf::system::System;
use std::cell::Cell;

fn simulation() -> Simulation {
    Simulation {
        scheme: Scheme::Baoab,
        units: Units::Reduced,
        step: 0.005,
        friction: 1.0,
        temperature: 23.0,
        masses: vec![0.5],
        frames: 40,
        thin: 5,
        time: None,
        bonds: Vec::new(),
        particles: false,
        seed: 3,
    }
}

/// Stops after so many looks.
struct Impatient(Cell<u32>);

impl Watch for Impatient {
    fn begin(&self, _label: &str, _total: u64, _done: u64) -> Box<dyn crate::Bar> {
        Box::new(Silent)
    }

    fn note(&self, _text: &str) {}

    fn stopped(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }
}

#[test]
fn an_interrupted_simulation_goes_on_to_the_same_numbers() {
    let expression = Expression::parse("A").unwrap();
    let landscape = Landscape {
        expression: &expression,
        models: &[],
        systems: &[("A", "mueller-brown")],
        system_seed: 0,
    };
    let start = System::by_name("mueller-brown", 2, 0).unwrap().sample(6, 1);
    let start: Vec<f64> = start.iter().map(|x| f64::from(*x)).collect();
    let place = tempfile::tempdir().unwrap();
    let output = place.path().join("out.npy");
    for scheme in [Scheme::Baoab, Scheme::LangevinLeapfrog, Scheme::Ghmc] {
        let asked = Simulation {
            scheme,
            ..simulation()
        };
        let run = |threads: usize, keeping: Option<&Keeping>, watch: &dyn Watch| {
            let keeping = keeping.map(|keeping| (keeping, Duration::ZERO));
            asked.run(
                &landscape,
                &start,
                &start,
                (threads, Isa::detect()),
                keeping,
                watch,
            )
        };
        let whole = run(1, None, &Silent).unwrap().finish("");
        assert_eq!((whole.points.len(), whole.energies.len()), (480, 240));
        let keeping = Keeping::beside(&output, serde_json::json!({"a": 1}));
        let error = run(2, Some(&keeping), &Impatient(Cell::new(3)))
            .err()
            .unwrap();
        assert!(matches!(error, Error::Interrupted(_)), "{error}");
        // Other settings are refused; the same go on.
        let other = Keeping::beside(&output, serde_json::json!({"a": 2}));
        let refused = run(2, Some(&other), &Silent).err().unwrap().to_string();
        assert!(refused.contains("other settings"), "{refused}");
        let again = run(3, Some(&keeping), &Silent).unwrap().finish("");
        assert_eq!(
            (again.points, again.energies),
            (whole.points, whole.energies)
        );
        keeping.finish().unwrap();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let asked = simulation();
    let refused = |asked: Simulation, dim: usize| asked.check(3, dim).unwrap_err().to_string();
    let with = |change: fn(&mut Simulation)| {
        let mut asked = asked.clone();
        change(&mut asked);
        asked
    };
    assert!(refused(with(|s| s.step = 0.0), 2).contains("step is 0"));
    assert!(refused(with(|s| s.temperature = f64::NAN), 2).contains("temperature"));
    assert!(refused(with(|s| s.frames = 0), 2).contains("frames"));
    assert!(refused(with(|s| s.thin = usize::MAX), 2).contains("thin"));
    assert!(refused(with(|s| s.frames = 1 << 40), 2).contains("memory"));
    assert!(refused(with(|s| s.bonds = vec![[0, 2]]), 6).contains("0-2"));
    assert!(asked.check(3, 2).is_ok());
}

#[test]
fn chains_on_a_cliff_are_named() {
    // A step far too large throws chains out of the surface.
    let expression = Expression::parse("A").unwrap();
    let landscape = Landscape {
        expression: &expression,
        models: &[],
        systems: &[("A", "mueller-brown")],
        system_seed: 0,
    };
    let start = System::by_name("mueller-brown", 2, 0)
        .unwrap()
        .sample(50, 1);
    let start: Vec<f64> = start.iter().map(|x| f64::from(*x)).collect();
    let asked = Simulation {
        step: 0.3,
        ..simulation()
    };
    let machine = (2, Isa::detect());
    let found = asked
        .run(&landscape, &start, &start, machine, None, &Silent)
        .unwrap()
        .finish("");
    let summary = &found.summary;
    let first = summary.departures[0].text();
    assert!(
        first.contains("left the data") || first.contains("was lost"),
        "{first}"
    );
    assert_eq!(found.points.len(), 50 * 40 * 2);
    assert!(
        asked
            .run(&landscape, &start, &start, machine, None, &Silent)
            .is_ok()
    );
    let timed = Simulation {
        time: Some(0.5),
        ..asked
    };
    assert!(
        timed
            .run(&landscape, &start, &start, machine, None, &Silent)
            .is_err()
    );
}

/// Keeps what it is told.
#[derive(Default)]
struct Told(std::cell::RefCell<Vec<String>>);

impl Watch for Told {
    fn begin(&self, _label: &str, _total: u64, _done: u64) -> Box<dyn crate::Bar> {
        Box::new(Silent)
    }

    fn note(&self, text: &str) {
        self.0.borrow_mut().push(text.into());
    }
}

#[test]
fn what_is_left_open_follows_units_rows_and_topology() {
    let place = tempfile::tempdir().unwrap();
    let topology = place.path().join("cg.toml");
    std::fs::write(
        &topology,
        "masses = [12.0, 14.0, 12.0, 16.0]\nbonds = [[0, 1], [1, 2], [2, 3]]",
    )
    .unwrap();
    let native = place.path().join("native.pdb");
    let beads = [[0.0, 0.0], [3.8, 0.0], [5.0, 3.6], [8.5, 4.5]];
    let lines = beads.iter().enumerate().map(|(k, [x, y])| {
        let number = k + 1;
        format!("ATOM  {number:>5}  CA  ALA A{number:>4}    {x:8.3}{y:8.3}{x:8.3}  1.00  0.00           C\n")
    });
    std::fs::write(&native, lines.collect::<String>() + "END\n").unwrap();
    let system = format!("{GO}{}", native.display());
    let expression = Expression::parse("A").unwrap();
    let landscape = Landscape {
        expression: &expression,
        models: &[],
        systems: &[("A", &system)],
        system_seed: 0,
    };
    let asking = Asking {
        scheme: Scheme::Baoab,
        units: Units::Nm,
        step: 2.0,
        friction: 1.0,
        temperature: Some(300.0),
        masses: Vec::new(),
        bonds: Vec::new(),
        topology: Some(topology),
        particles: None,
        chains: None,
        frames: 2,
        thin: 2,
        time: None,
        seed: 0,
    };
    // Three frames of four beads, each 0.15 nm from the next in the unit of `length`.
    let rows = |length: f64| Given {
        name: "rows".into(),
        values: [0.0, 1.0, 2.0, 3.0]
            .map(|k| [0.15 * length * k, 0.0, 0.0])
            .concat()
            .repeat(3),
        dim: 12,
        shaped: false,
    };
    let told = Told::default();
    let settled = asking.settle(&landscape, Some(rows(1.0)), None, &told);
    let settled = settled.unwrap();
    assert_eq!(settled.simulation.masses, [12.0, 14.0, 12.0, 16.0]);
    assert_eq!(settled.simulation.bonds, [[0, 1], [1, 2], [2, 3]]);
    assert!(settled.simulation.particles && told.0.borrow().is_empty());
    assert_eq!((settled.start.len(), settled.data.len()), (36, 36));
    // A start of its own, once unless asked otherwise; what is given stands.
    let alone = Asking {
        masses: vec![50.0],
        ..asking.clone()
    };
    let alone = alone.settle(&landscape, None, Some(rows(1.0)), &told);
    let alone = alone.unwrap();
    assert_eq!((alone.start.len(), alone.data.len()), (12, 36));
    assert_eq!(alone.simulation.masses, [50.0]);
    // A unit that makes bonds ten times too long or short is doubted.
    let angstrom = Asking {
        units: Units::Angstrom,
        ..asking.clone()
    };
    for (asking, length, words) in [
        (&asking, 10.0, "in Angstrom, say so"),
        (&angstrom, 1.0, "in nm, say so"),
    ] {
        asking
            .settle(&landscape, Some(rows(length)), None, &told)
            .unwrap();
        let last = told.0.borrow_mut().pop().unwrap();
        assert!(last.contains(words), "{last}");
    }
    let refused = |asking: Asking, rows: Given| {
        let settled = asking.settle(&landscape, Some(rows), None, &Silent);
        settled.err().unwrap().to_string()
    };
    let with = |change: fn(&mut Asking)| {
        let mut asking = asking.clone();
        change(&mut asking);
        asking
    };
    let told = refused(with(|s| s.temperature = None), rows(1.0));
    assert!(told.contains("how warm"), "{told}");
    let told = refused(with(|s| s.chains = Some(4)), rows(1.0));
    assert!(
        told.contains("chains is 4, but the start has 3 rows"),
        "{told}"
    );
    let told = refused(with(|s| s.chains = Some(0)), rows(1.0));
    assert!(told.contains("chains is 0"), "{told}");
    let mut other = rows(1.0);
    other.dim = 9;
    let told = refused(asking.clone(), other);
    assert!(told.contains("rows of 9 numbers"), "{told}");
    let mut lost = rows(1.0);
    lost.values[13] = f64::NAN;
    let told = refused(asking.clone(), lost);
    assert!(told.contains("row 1, column 1"), "{told}");
}
