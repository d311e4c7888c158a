//! `diffclf anneal`: a model's path run by sequential Monte Carlo, annealed importance sampling or replica exchange; with a target, a
//! Boltzmann generator.

use crate::annealing::{OutputArgs, SmcArgs, write_rows};
use crate::bridge::BridgeArgs;
use crate::help;
use crate::opened::ModelArgs;
use crate::print::print;
use crate::states;
use crate::terminal::Terminal;
use diffclf::sample::Particles;
use diffclf_report::annealing;
use diffclf_report::text::table_text;
use diffclf_run::anneal::{AnnealMethod, Annealed, Annealing, own_target};
use diffclf_run::error::{Error, Result};
use diffclf_run::molecule::MoleculeChoice;
use diffclf_run::named::word;
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples:
  diffclf anneal runs/mine/model.safetensors -o samples.npy
  diffclf anneal runs/mog40/model.safetensors --target mog40 -o exact.npy --weights w.npy
  diffclf anneal runs/mog40/model.safetensors --target mog40 --contest --diffusion -o exact.npy
  diffclf anneal runs/mine --target-energy '2*(1 - cos(phi)) + 0.5*psi^2' -o boltzmann.npy \\
      --weights w.npy
  diffclf anneal runs/mine/model.safetensors --method exchange --levels 24 -n 64 --moves 4 \\
      -o samples.npy

Without --target the samples are those of the model's density at its smallest time, corrected for
all errors of the way. With --target the last marginal is replaced by the exact density of a system:
a Boltzmann generator, whose weighted samples are unbiased whatever the model is worth; log Z is
then that of the target (0 for these systems). --target-energy is an energy of your own in kT, of
the columns by their names or as x0, x1, ... (diffclf weight --help tells what can be written), or
a table of text (.csv) with its values on a grid of one to three columns, the energies under energy.
--contest runs importance sampling and annealed importance sampling beside it.

A model of an interpolant carries rows of one endpoint to its own density at the other, by the
kernels of its SDE with noise --g and its velocity; its energies give the weights. Train the
velocity beside the energy:
  diffclf train a.npy --end b.npy --objective dsm+diffclf+velocity -o runs/bridge
  diffclf anneal runs/bridge --rows b.npy -n 2000 -o like_a.npy --weights w.npy
  diffclf anneal runs/bridge --rows a.npy -n 2000 --towards end -o like_b.npy
Where the rows are frames of a molecule in two solvents, --molecule puts its force field in the
place of the model at both ends: log Z is then log(Z_to/Z_from), whatever the model is worth. MCMC
alone moves the frames, no velocity is needed:
  diffclf anneal runs/path --rows frames-lambda-0.npy --towards end -n 512 --levels 64 --moves 4 \\
      --molecule '{topology = \"aldp.prmtop\", solvents = [\"0\", \"1\"], temperature = 300.0}' \\
      --step 0.001 --runs 8 -o like-lambda-1.npy --weights w.npy
Between two built-in mixtures --velocity exact uses exact velocity and score, and ends at the exact
law (the paper's experiment):
  diffclf anneal runs/mixtures --velocity exact -n 8192 --moves 0 -o exact.npy --weights w.npy

exchange runs replica exchange: -n ladders side by side, --moves kernel steps in each of --sweeps
sweeps.";

/// Run a model's path by SMC, AIS or replica exchange.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelArgs,
    #[arg(long, help = help::anneal_method(), value_name = "NAME", default_value = "smc", value_parser = word::<AnnealMethod>)]
    method: AnnealMethod,
    #[arg(long, help = help::target(), value_name = "SYSTEM")]
    target: Option<String>,
    /// An energy of your own as the target, in kT: an expression of the columns, or a table (.csv)
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "target")]
    target_energy: Option<String>,
    /// The molecule that rows of an interpolant are frames of (nm), in its two solvents: its energies hold at both ends
    #[arg(long, value_name = "MOLECULE", conflicts_with_all = ["target", "target_energy"], help_heading = "Interpolants")]
    molecule: Option<MoleculeChoice>,
    /// Seed of the target's own parameters
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    system_seed: u64,
    /// Move particles between levels by the reverse diffusion (Phillips et al. 2024), not by MCMC alone
    #[arg(long)]
    diffusion: bool,
    /// Also run importance sampling and annealed importance sampling, and print all three
    #[arg(long)]
    contest: bool,
    #[command(flatten)]
    bridge: BridgeArgs,
    /// Sweeps of replica exchange after as many for warming up
    #[arg(long, value_name = "SWEEPS", default_value_t = 500)]
    sweeps: usize,
    #[command(flatten)]
    smc: SmcArgs,
    #[command(flatten)]
    out: OutputArgs,
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    args.out.check()?;
    if args.contest && args.target.is_none() && args.target_energy.is_none() {
        return Err(Error::Usage(
            "--contest compares ways to a target; add --target SYSTEM or --target-energy EXPRESSION".into(),
        ));
    }
    if let Some(opened) = args.model.open_states()? {
        if args.target_energy.is_some()
            || args.molecule.is_some()
            || args.contest
            || args.diffusion
            || args.method == AnnealMethod::Exchange
        {
            return Err(Error::Usage(
                "states are annealed by smc or ais, towards their model or --target ising or potts; leave out the rest".into(),
            ));
        }
        let ais = args.method == AnnealMethod::Ais;
        let target = args.target.clone();
        return states::anneal(
            &opened,
            target,
            &args.smc,
            ais,
            &args.model.name(),
            &args.out,
        );
    }
    let asked = Annealing {
        method: args.method,
        target: args.target.clone(),
        system_seed: args.system_seed,
        diffusion: args.diffusion,
        contest: args.contest,
        weights: args.out.weights.is_some(),
        bridge: args.bridge.choice(),
        sweeps: args.sweeps,
        particles: args.smc.particles,
        levels: args.smc.levels,
        smc: args.smc.smc()?,
    };
    let (model, energy) = args.model.open()?;
    let watch = Terminal::new(args.out.quiet);
    let of_model = (&model.content, &energy);
    let done = match (&args.target_energy, &args.molecule) {
        (Some(text), _) => {
            let target = own_target(text, &model.content)?;
            asked.run_to(Some(&*target), of_model, &watch)?
        }
        (None, Some(molecule)) => {
            let known =
                molecule.energy_of_rows(model.content.columns(), args.model.machine()?.1)?;
            asked.run_between(&*known, of_model, &watch)?
        }
        (None, None) => asked.run(&model.content, &energy, &watch)?,
    };
    let seed = args.smc.seed;
    let samples = match &done.found {
        Annealed::Descent { runs, .. } => {
            args.out.write(&runs[0].1, seed)?;
            args.smc.particles
        }
        Annealed::Crossing { particles, .. } => {
            args.out.write(particles, seed)?;
            args.smc.particles
        }
        Annealed::Exchanged { found, ladders, .. } => {
            let rows = args.sweeps * ladders;
            write_rows(&args.out.output, &found.draws, rows, args.out.force)?;
            rows
        }
    };
    let output = args.out.output.display();
    let found = done.finish(&format!("{samples} samples in {output}"));
    let (text, mut record) = told(&args, &asked, &found);
    print(&text)?;
    record["command"] = "anneal".into();
    record["model"] = args.model.name().into();
    args.out.write_record(&record)
}

/// The text and the record.
fn told(args: &Args, asked: &Annealing, found: &Annealed) -> (String, Value) {
    let text = |caption: String, runs: &[(&str, &Particles)]| {
        table_text(&annealing::runs(caption, runs)) + &annealing::notes(runs)
    };
    match found {
        Annealed::Descent { runs, smc } => {
            let runs: Vec<_> = runs.iter().map(|(name, run)| (*name, run)).collect();
            let target = args.target.as_deref().or(args.target_energy.as_deref());
            let end = target.unwrap_or("the model's density");
            let results: serde_json::Map<String, Value> = runs
                .iter()
                .map(|(name, run)| (name.to_string(), annealing::record(run)))
                .collect();
            let record = json!({
                "target": args.target,
                "target_energy": args.target_energy,
                "diffusion": args.diffusion,
                "settings": smc,
                "results": results,
            });
            (text(format!("From noise to {end}"), &runs), record)
        }
        Annealed::Crossing {
            particles,
            names: [from, to],
            g,
            smc,
        } => {
            let record = json!({
                "from": from,
                "to": to,
                "interpolant": asked.bridge.record(),
                "g": g,
                "molecule": args.molecule,
                "settings": smc,
                "result": annealing::record(particles),
            });
            let caption = format!("From {from} to {to}");
            (text(caption, &[("result", &**particles)]), record)
        }
        Annealed::Exchanged {
            found,
            settings,
            ladders,
            levels,
            grid,
        } => {
            let record = json!({
                "method": "exchange",
                "target": args.target,
                "target_energy": args.target_energy,
                "settings": settings,
                "grid": grid,
                "result": found,
            });
            let table = annealing::exchange(found, settings, *ladders, *levels);
            (table_text(&table), record)
        }
    }
}
