//! `diffclf observe`: observables of frames, their free energies, states and distances from a reference.

use crate::opened::RecordArgs;
use crate::print::{note, print};
use diffclf::format::npy::write_npy;
use diffclf::observable::{Observable, TicaSettings};
use diffclf_report::observation;
use diffclf_report::text::table_text;
use diffclf_run::error::{Error, Result};
use diffclf_run::observe::{Frames, Observing, SlowCoordinates};
use diffclf_run::outputs;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  diffclf observe chains.npy --chains 100 --of phi=dihedral:0-1-2-3 --of psi=dihedral:1-2-3-4 \\
      --reference data.npy --states phi=0
  diffclf observe chains.xtc --of end=distance:0-9 --of bend=angle:0-4-9 -o values.npy \\
      --picture surface.svg
  diffclf observe mb.npy --of x=x:0 --of y=x:1 --reference exact.npy --bins 100 \\
      --limits=-1.8,1.1,-0.5,2
  diffclf observe chains.npy --tica reference.npz --reference data.npy --limits=-0.9,2.81,-1.41,0.56
  diffclf observe chains.npy --tica-lag 20 --components 2 --reference data.npy

The plane of the first two observables gives the free energy surface, and with --reference the
Jensen-Shannon divergence (natural logarithm, over the range of both sets unless --limits) and the
PMF error (squared, kT^2, with cells for all that lies outside), each beside its floor: what two
random halves of the reference have. Errors of means and weights are by effective numbers of frames;
frames of several chains stand chain after chain, as simulate writes them.

Slow coordinates (TICA) are made of all distances of the particles and the dihedrals of consecutive
ones, given as mean and coefficients, or fitted to the reference (to the frames, if there is none)
with a lag in frames.";

/// Observables of frames, and their distances from a reference.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Frames: .npy, .npz, .csv, .xtc, .dcd or .pdb
    #[arg(value_name = "FRAMES")]
    frames: PathBuf,
    /// An observable with a name: NAME=x:COLUMN, distance:A-B, angle:A-B-C or dihedral:A-B-C-D
    #[arg(long, value_name = "NAME=WHAT", value_parser = named)]
    of: Vec<(String, Observable)>,
    /// Frames to compare with
    #[arg(long, value_name = "FILE")]
    reference: Option<PathBuf>,
    /// Chains of the frames, one after the other
    #[arg(long, value_name = "N", default_value_t = 1)]
    chains: usize,
    /// Chains of the reference
    #[arg(long, value_name = "N", default_value_t = 1)]
    reference_chains: usize,
    /// Cells along an axis
    #[arg(long, value_name = "N", default_value_t = 64)]
    bins: usize,
    /// Limits of the plane: x from and to, y from and to [default: the circle for dihedrals, else the range]
    #[arg(
        long,
        value_name = "X0,X1,Y0,Y1",
        value_delimiter = ',',
        num_args = 1,
        allow_hyphen_values = true
    )]
    limits: Vec<f64>,
    /// Borders between states of an observable: phi=0 or phi=-2,2
    #[arg(long, value_name = "NAME=BORDERS", value_parser = borders)]
    states: Vec<(String, Borders)>,
    /// Given slow coordinates: an .npz archive with mean and coefficients
    #[arg(long, value_name = "FILE.npz", conflicts_with = "tica_lag")]
    tica: Option<PathBuf>,
    /// Fit slow coordinates with this lag, in frames
    #[arg(long, value_name = "FRAMES")]
    tica_lag: Option<usize>,
    /// Slow coordinates to fit
    #[arg(long, value_name = "N", default_value_t = 2)]
    components: usize,
    /// Do not scale fitted coordinates to the kinetic map
    #[arg(long)]
    no_kinetic_map: bool,
    /// Write the values of all observables: a .npy file of (frames, observables)
    #[arg(short, long, value_name = "OUT.npy")]
    output: Option<PathBuf>,
    /// Draw the free energy surface, beside the reference's: an .svg file
    #[arg(long, value_name = "OUT.svg")]
    picture: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

/// Borders of states.
type Borders = Vec<f64>;

fn named(text: &str) -> std::result::Result<(String, Observable), String> {
    let (name, what) = text.split_once('=').ok_or_else(|| {
        format!("'{text}' has no name; expected one such as phi=dihedral:0-1-2-3")
    })?;
    let observable = Observable::parse(what).map_err(|error| error.to_string())?;
    Ok((name.into(), observable))
}

fn borders(text: &str) -> std::result::Result<(String, Borders), String> {
    let wrong = || format!("'{text}' names no borders; expected such as phi=0 or phi=-2,2");
    let (name, numbers) = text.split_once('=').ok_or_else(wrong)?;
    let numbers: Option<Vec<f64>> = numbers
        .split(',')
        .map(|word| word.trim().parse().ok().filter(|x: &f64| x.is_finite()))
        .collect();
    let mut numbers = numbers.ok_or_else(wrong)?;
    numbers.sort_by(f64::total_cmp);
    Ok((name.into(), numbers))
}

/// Runs the command.
pub fn run(args: Args) -> Result<()> {
    let outputs = [args.output.as_ref(), args.picture.as_ref()];
    args.record
        .check(outputs.into_iter().flatten().map(PathBuf::as_path))?;
    let limits = match args.limits.as_slice() {
        [] => None,
        &[a, b, c, d] => Some([a, b, c, d]),
        other => {
            return Err(Error::Usage(format!(
                "--limits has {} numbers, expected four: x from and to, y from and to",
                other.len()
            )));
        }
    };
    let tica = match (args.tica, args.tica_lag) {
        (Some(path), _) => Some(SlowCoordinates::Given(path)),
        (None, Some(lag)) => Some(SlowCoordinates::Fitted(TicaSettings {
            lag,
            components: args.components,
            kinetic_map: !args.no_kinetic_map,
        })),
        (None, None) => None,
    };
    let asked = Observing {
        observables: args.of,
        tica,
        states: args.states,
        bins: args.bins,
        limits,
    };
    let frames = Frames::read(&args.frames, args.chains)?;
    let reference = match &args.reference {
        Some(path) => Some(Frames::read(path, args.reference_chains)?),
        None => None,
    };
    let found = asked.run(&frames, reference.as_ref())?;
    for set in std::iter::once(&found.found).chain(&found.reference) {
        if set.lost > 0 {
            note(&format!(
                "warning: {} frames of {} hold numbers that are none and count for nothing",
                set.lost, set.name
            ));
        }
    }
    let force = args.record.force;
    if let Some(path) = &args.output {
        let series = &found.found.series;
        let rows = series[0].values.len();
        let values: Vec<f64> = (0..rows)
            .flat_map(|k| series.iter().map(move |one| one.values[k]))
            .collect();
        outputs::write(path, force, |writer| {
            write_npy(&[rows, series.len()], &values, writer)
        })?;
    }
    if let Some(path) = &args.picture {
        let Some(svg) = observation::surfaces(&found) else {
            return Err(Error::Usage(
                "--picture needs two observables; name another with --of".into(),
            ));
        };
        outputs::write(path, force, |writer| Ok(writer.write_all(svg.as_bytes())?))?;
    }
    let tables: String = observation::tables(&found)
        .iter()
        .map(|table| table_text(table) + "\n")
        .collect();
    print(tables.trim_end_matches('\n'))?;
    print("\n")?;
    args.record
        .write(|| json!({"command": "observe", "observation": found}))
}
