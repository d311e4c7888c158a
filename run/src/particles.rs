//! Rows of particles: whether the model knows their centre, whether rows are turned at random or onto a frame. The one place where the settings'
//! defaults for them stand.

use crate::data::DataSet;
use crate::error::{Error, Result};
use crate::network::NetworkChoice;
use crate::settings::Settings;
use crate::words;
use crate::words::Setting;
use diffclf::particles::{Frame, Rotation, Subspace, View};
use serde::{Deserialize, Serialize};

/// What becomes of the centre of all particles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CentreKind {
    /// It is no part of the model: noise, densities and samples have as many dimensions less as space has.
    Free,
    /// It is a part of the row like any other.
    Kept,
}

/// What is done with rows of particles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Treatment {
    /// Their number.
    pub particles: usize,
    /// Their centre is no part of the model.
    pub without_centre: bool,
    /// Each row is turned at random when it is trained on.
    pub rotate: bool,
    /// Each row is turned onto the first one.
    pub align: bool,
}

impl Treatment {
    /// What the settings ask for; none without particles, where none of them may be asked for.
    pub fn of(settings: &Settings) -> Result<Option<Self>> {
        let Some(particles) = settings.particles else {
            let asked = [
                ("centre", settings.centre.is_some()),
                ("rotate", settings.rotate == Some(true)),
                ("align", settings.align == Some(true)),
            ];
            return match asked.iter().find(|(_, asked)| *asked) {
                None => Ok(None),
                Some((key, _)) => Err(Error::Refused(words!(
                    Setting::new(key),
                    " is for rows of particles; say how many there are with ",
                    Setting::new("particles")
                ))),
            };
        };
        let network = NetworkChoice::of(settings)?;
        let usual = match network {
            NetworkChoice::Egnn { .. } | NetworkChoice::Transformer { .. } => CentreKind::Free,
            NetworkChoice::Mlp {} | NetworkChoice::Waves { .. } | NetworkChoice::Pairs {} => {
                CentreKind::Kept
            }
        };
        let align = settings.align.unwrap_or(false);
        let learns_turns = matches!(network, NetworkChoice::Transformer { .. }) && !align;
        let rotate = settings.rotate.unwrap_or(learns_turns);
        if align && rotate {
            return Err(Error::Refused(words!(
                Setting::new("align"),
                " and ",
                Setting::new("rotate"),
                " contradict each other: rows are turned onto one, or each at random; leave one of them out"
            )));
        }
        Ok(Some(Self {
            particles,
            without_centre: settings.centre.unwrap_or(usual) == CentreKind::Free,
            rotate,
            align,
        }))
    }

    /// Fills in what is not what a reader of the settings would expect without a word.
    pub fn fill(self, settings: &mut Settings) {
        if self.without_centre {
            settings.centre = Some(CentreKind::Free);
        }
        if self.rotate {
            settings.rotate = Some(true);
        }
    }

    /// What happens to rows of so many columns, of which `first` is the first; none if nothing does.
    fn view(self, columns: usize, first: &dyn Fn() -> Result<Vec<f64>>) -> Result<Option<View>> {
        let n = self.particles;
        if n < 2 || !columns.is_multiple_of(n) {
            return Err(Error::setting(
                "particles",
                n,
                format!("at least 2, and a divisor of the {columns} columns"),
            ));
        }
        let space = columns / n;
        let turned = [("align", self.align), ("rotate", self.rotate)];
        if let Some((key, _)) = turned.iter().find(|(_, asked)| *asked)
            && !Rotation::exist_in(space)
        {
            return Err(Error::Refused(words!(
                Setting::new(key),
                format!(" is for particles of 2 or 3 numbers, and these have {space}")
            )));
        }
        if !self.without_centre && !self.align {
            return Ok(None);
        }
        let frame = match self.align {
            true => Some(Frame::new(&first()?, n)?),
            false => None,
        };
        let subspace = match self.without_centre {
            true => Some(Subspace::new(n, space)?),
            false => None,
        };
        Ok(Some(View::new(columns, frame, subspace)))
    }
}

/// The data as the model will know them.
pub fn viewed(settings: &Settings, sets: Vec<DataSet>) -> Result<Vec<DataSet>> {
    let (Some(treatment), Some(first)) = (Treatment::of(settings)?, sets.first()) else {
        return Ok(sets);
    };
    let view = treatment.view(first.dim()?, &|| first.first_row())?;
    match view {
        Some(view) => sets
            .into_iter()
            .map(|set| set.through(view.clone()))
            .collect(),
        None => Ok(sets),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn treatment(text: &str) -> Result<Option<Treatment>> {
        Treatment::of(&toml::from_str(text).unwrap())
    }

    #[test]
    fn defaults_follow_the_network() {
        assert_eq!(treatment("").unwrap(), None);
        let of = |network: &str| {
            let text = format!("particles = 3\nnetwork = \"{network}\"");
            treatment(&text).unwrap().unwrap()
        };
        let pairs = of("pairs");
        assert!(!pairs.without_centre && !pairs.rotate && !pairs.align);
        assert!(of("egnn").without_centre && !of("egnn").rotate);
        assert!(of("transformer").without_centre && of("transformer").rotate);
        let text = "particles = 3\nnetwork = \"transformer\"\nalign = true\ncentre = \"kept\"";
        let aligned = treatment(text).unwrap().unwrap();
        assert!(aligned.align && !aligned.rotate && !aligned.without_centre);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let refused = |text: &str| treatment(text).unwrap_err().to_string();
        for key in ["centre = \"free\"", "rotate = true", "align = true"] {
            assert!(refused(key).contains("particles"), "{key}");
        }
        let both = refused("particles = 3\nalign = true\nrotate = true");
        assert!(both.contains("contradict"), "{both}");
        let flat = Treatment {
            particles: 4,
            without_centre: true,
            rotate: true,
            align: false,
        };
        let row = || Ok(vec![0.0; 4]);
        let message = flat.view(4, &row).unwrap_err().to_string();
        assert!(message.contains("2 or 3 numbers"), "{message}");
        let message = flat.view(6, &row).unwrap_err().to_string();
        assert!(message.contains("divisor"), "{message}");
    }
}
