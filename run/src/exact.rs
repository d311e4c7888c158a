//! The exact path of the systems a model was trained on, in the model's coordinates.

use crate::endpoints::mixtures;
use crate::error::{Error, Result};
use crate::words;
use crate::words::Setting;
use diffclf::energy::exact::ExactPath;
use diffclf::model::{Content, DataRecord};
use diffclf::system::{GaussianMixture, System};

/// Systems named on the command line instead of those of the training.
#[derive(Debug, Clone, Copy, Default)]
pub struct Systems<'a> {
    /// The data.
    pub system: Option<&'a str>,
    /// The second endpoint of an interpolant.
    pub end_system: Option<&'a str>,
    /// Seed of the systems' own parameters.
    pub system_seed: Option<u64>,
}

/// The exact path in the model's coordinates, and the names of its systems.
pub fn exact_path(named: &Systems<'_>, content: &Content) -> Result<(ExactPath, Vec<String>)> {
    let spec = &content.spec;
    if spec.coupling.is_some() {
        return Err(Error::Refused(words!(
            "the exact path is known for independent pairs, and the model was trained with ",
            Setting::to("coupling", "optimal-transport")
        )));
    }
    let trained = |k: usize| {
        content
            .record
            .data
            .get(k)
            .filter(|data| data.system_seed.is_some())
    };
    let (start, name) = mixture(named, content, named.system, trained(0), "system")?;
    let mut names = vec![name];
    let end = if spec.process.is_interpolant() {
        let (end, name) = mixture(named, content, named.end_system, trained(1), "end_system")?;
        names.push(name);
        Some(end)
    } else if named.end_system.is_some() {
        return Err(Error::Refused(words!(
            Setting::new("end_system"),
            " is for interpolants, and the model's process is ",
            spec.process.name(),
            "; leave it out"
        )));
    } else {
        None
    };
    Ok((ExactPath::new(spec.process, start, end)?, names))
}

/// The exact path of the systems a model was trained on, in its coordinates; none if one of them is a file, or no mixture.
pub fn known_path(content: &Content) -> Result<Option<ExactPath>> {
    let spec = &content.spec;
    // A mixture of whole rows is none of their particles' without a centre, or in a frame; paths are known for independent pairs.
    if content.view().is_some() || spec.coupling.is_some() {
        return Ok(None);
    }
    let mut ends = Vec::new();
    for data in &content.record.data {
        let Some(seed) = data.system_seed else {
            return Ok(None);
        };
        let system = System::by_name(&data.name, spec.dim, seed)?;
        let Some(mixture) = system.mixture() else {
            return Ok(None);
        };
        ends.push(content.standardisation.mixture_to_model(mixture)?);
    }
    let mut ends = ends.into_iter();
    match ends.next() {
        Some(start) => Ok(Some(ExactPath::new(spec.process, start, ends.next())?)),
        None => Ok(None),
    }
}

fn mixture(
    named: &Systems<'_>,
    content: &Content,
    name: Option<&str>,
    trained: Option<&DataRecord>,
    key: &'static str,
) -> Result<(GaussianMixture, String)> {
    let Some(name) = name.or(trained.map(|data| data.name.as_str())) else {
        return Err(Error::Refused(words!(
            "the model was trained on a file, whose exact density is not known; name the system it was drawn from with ",
            Setting::new(key)
        )));
    };
    if content.view().is_some() {
        return Err(Error::Refused(words!(
            "the model knows particles without their centre or in a frame, and the exact density of ",
            name,
            " is that of whole rows; train with ",
            Setting::to("centre", "kept"),
            " to compare"
        )));
    }
    let seed = named
        .system_seed
        .or(trained.and_then(|data| data.system_seed));
    let system = System::by_name(name, content.spec.dim, seed.unwrap_or(0))?;
    let Some(mixture) = system.mixture() else {
        return Err(Error::Refused(words!(
            "the marginals of ",
            name,
            " under noise are not known exactly, so there is nothing to compare with; expected one of ",
            mixtures().join(", ")
        )));
    };
    Ok((
        content.standardisation.mixture_to_model(mixture)?,
        name.into(),
    ))
}
