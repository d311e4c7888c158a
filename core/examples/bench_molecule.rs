//! Steps of Langevin dynamics a second: `bench_molecule TOPOLOGY COORDINATES COPIES SWEEPS [vacuum]`; `benches/molecule.py` runs it beside OpenMM.

use diffclf::engine::{Isa, Pool};
use diffclf::molecule::{
    ForceField, ReplicaSettings, Replicas, Solvent, SolventModel, Topology, read_coordinates,
};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [prmtop, crd, copies, sweeps, rest @ ..] = arguments.as_slice() else {
        return Err("usage: bench_molecule TOPOLOGY COORDINATES COPIES SWEEPS [vacuum]".into());
    };
    let topology = Topology::from_prmtop(&std::fs::read(prmtop)?)?;
    let start = read_coordinates(&std::fs::read(crd)?)?;
    let solvent = if rest.is_empty() {
        Solvent::WATER
    } else {
        Solvent::Vacuum
    };
    let model = (solvent != Solvent::Vacuum).then_some(SolventModel::Obc1);
    let field = ForceField::new(&topology, model)?;
    let settings = ReplicaSettings {
        solvents: vec![solvent],
        ladders: copies.parse()?,
        moves: 100,
        ..ReplicaSettings::default()
    };
    let (ladders, moves) = (settings.ladders, settings.moves);
    let mut run = Replicas::new(&field, &topology, settings, &start, Isa::detect())?;
    let (pool, sweeps) = (Pool::new(1), sweeps.parse::<u64>()?);
    run.advance(&pool, false)?;
    let begin = Instant::now();
    for _ in 0..sweeps {
        run.advance(&pool, false)?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let steps = (sweeps * moves) as f64 * ladders as f64;
    println!(
        "{{\"copies\": {ladders}, \"steps_per_second\": {:.0}, \"energy\": {}}}",
        steps / seconds,
        run.terms(0, 0).total(solvent)
    );
    Ok(())
}
