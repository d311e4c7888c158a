//! The network that a user asks for: its kind and what is known of the particles. Sizes are settings of their own.

use crate::error::{Error, Result};
use crate::named::Named;
use crate::settings::Settings;
use crate::words;
use crate::words::Setting;
use diffclf::discrete::network::SitesNetwork;
use diffclf::network::{EgnnSpec, NetworkSpec, TransformerSpec};
use serde::{Deserialize, Serialize};

/// A kind of network, with parameters where it has any.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum NetworkChoice {
    /// A perceptron over all columns.
    Mlp {},
    /// A perceptron over all columns and waves of them, for edges in few dimensions.
    Waves {
        /// Number of waves.
        #[serde(skip_serializing_if = "Option::is_none")]
        waves: Option<usize>,
    },
    /// A sum over pairs of particles of a function of their distance.
    Pairs {},
    /// Messages between particles and moves along their differences.
    Egnn {
        /// The type of each particle, from 0 on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        types: Vec<u32>,
        /// Pairs of particles with a bond, counted from 0.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        bonds: Vec<[u32; 2]>,
        /// Tell mirror images apart.
        #[serde(default)]
        cross: bool,
        /// Farthest that one neighbour moves a particle in all layers together.
        #[serde(skip_serializing_if = "Option::is_none")]
        range: Option<f64>,
        /// Distance at which messages fade.
        #[serde(skip_serializing_if = "Option::is_none")]
        cutoff: Option<f64>,
    },
    /// Attention between particles, through their differences.
    Transformer {
        /// The type of each particle, from 0 on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        types: Vec<u32>,
        /// Heads of attention.
        #[serde(skip_serializing_if = "Option::is_none")]
        heads: Option<usize>,
        /// Columns of a head.
        #[serde(skip_serializing_if = "Option::is_none")]
        head_width: Option<usize>,
    },
}

impl NetworkChoice {
    fn name(&self) -> &'static str {
        match self {
            Self::Mlp {} => "mlp",
            Self::Waves { .. } => "waves",
            Self::Pairs {} => "pairs",
            Self::Egnn { .. } => "egnn",
            Self::Transformer { .. } => "transformer",
        }
    }

    /// Columns of a hidden layer where none are asked for, if the kind has a usual number.
    pub fn usual_width(&self) -> Option<usize> {
        match self {
            Self::Egnn { .. } => Some(64),
            Self::Transformer { .. } => Some(96),
            Self::Mlp {} | Self::Waves { .. } | Self::Pairs {} => None,
        }
    }

    /// Number of layers where none is asked for.
    pub fn usual_depth(&self) -> usize {
        match self {
            Self::Transformer { .. } => 2,
            Self::Mlp {} | Self::Waves { .. } | Self::Pairs {} | Self::Egnn { .. } => 4,
        }
    }

    /// What is asked for: a perceptron, or pairs where there are particles, unless a kind is named. Refuses a kind that does not go with
    /// the number of particles.
    pub fn of(settings: &Settings) -> Result<Self> {
        let particles = settings.particles.is_some();
        let usual = if particles {
            Self::Pairs {}
        } else {
            Self::Mlp {}
        };
        let asked = settings.network.clone().map_or(usual, |named| named.0);
        let over_particles = !matches!(asked, Self::Mlp {} | Self::Waves { .. });
        if over_particles == particles {
            return Ok(asked);
        }
        let network = Setting::to("network", asked.name());
        let particles = Setting::new("particles");
        Err(Error::Refused(if over_particles {
            words!(
                network,
                " is a network over particles; say how many there are with ",
                particles
            )
        } else {
            words!(
                network,
                " knows no particles; leave out ",
                particles,
                " or choose ",
                Setting::to("network", "pairs"),
                ", ",
                Setting::to("network", "egnn"),
                " or ",
                Setting::to("network", "transformer")
            )
        }))
    }

    /// The network over the sites of states: a perceptron, unless a transformer is asked for. Sets sizes that are not given.
    pub fn over_sites(s: &mut Settings) -> Result<SitesNetwork> {
        let asked = s.network.get_or_insert(Named(Self::Mlp {})).0.clone();
        match asked {
            Self::Mlp {} => Ok(SitesNetwork::Mlp {
                width: *s.width.get_or_insert(128),
                depth: *s.depth.get_or_insert(3),
            }),
            Self::Transformer {
                types,
                heads,
                head_width,
            } if types.is_empty() => Ok(SitesNetwork::Transformer {
                width: *s.width.get_or_insert(64),
                depth: *s.depth.get_or_insert(2),
                heads: heads.unwrap_or(SitesNetwork::HEADS),
                head_width: head_width.unwrap_or(SitesNetwork::HEAD_WIDTH),
            }),
            Self::Transformer { .. } => Err(Error::Refused(words!(
                "types are of particles, and sites of states have none; leave them out of ",
                Setting::new("network")
            ))),
            _ => Err(Error::Refused(words!(
                Setting::to("network", asked.name()),
                " does not go with states; choose ",
                Setting::to("network", "mlp"),
                " or ",
                Setting::to("network", "transformer"),
                ", or ask for rows of numbers with ",
                Setting::to("states", "0")
            ))),
        }
    }

    /// The network of this kind with these sizes.
    pub fn spec(self, particles: usize, width: usize, depth: usize) -> NetworkSpec {
        match self {
            Self::Mlp {} => NetworkSpec::Mlp { width, depth },
            Self::Waves { waves } => NetworkSpec::Waves {
                width,
                depth,
                waves: waves.unwrap_or(width),
            },
            Self::Pairs {} => NetworkSpec::Pairs {
                particles,
                width,
                depth,
            },
            Self::Egnn {
                types,
                bonds,
                cross,
                range,
                cutoff,
            } => {
                let plain = EgnnSpec::new(particles, width, depth);
                NetworkSpec::Egnn(EgnnSpec {
                    types,
                    bonds,
                    cross,
                    range: range.unwrap_or(plain.range),
                    cutoff,
                    ..plain
                })
            }
            Self::Transformer {
                types,
                heads,
                head_width,
            } => {
                let plain = TransformerSpec::new(particles, width, depth);
                NetworkSpec::Transformer(TransformerSpec {
                    types,
                    heads: heads.unwrap_or(plain.heads),
                    head_width: head_width.unwrap_or(plain.head_width),
                    ..plain
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named::words_of;

    #[test]
    fn every_network_can_be_asked_for() {
        assert_eq!(words_of::<NetworkChoice>(), NetworkSpec::NAMES);
        let of = |text: &str| {
            let settings: Settings = toml::from_str(text).unwrap();
            NetworkChoice::of(&settings).map(|choice| choice.spec(3, 8, 2))
        };
        assert!(matches!(of(""), Ok(NetworkSpec::Mlp { .. })));
        assert!(matches!(of("particles = 3"), Ok(NetworkSpec::Pairs { .. })));
        let asked =
            of("particles = 3\nnetwork = { kind = \"egnn\", bonds = [[0, 2]], cross = true }");
        let expected = EgnnSpec {
            bonds: vec![[0, 2]],
            cross: true,
            ..EgnnSpec::new(3, 8, 2)
        };
        assert_eq!(asked.unwrap(), NetworkSpec::Egnn(expected));
        let asked = of("particles = 3\nnetwork = { kind = \"transformer\", heads = 2 }");
        let expected = TransformerSpec {
            heads: 2,
            ..TransformerSpec::new(3, 8, 2)
        };
        assert_eq!(asked.unwrap(), NetworkSpec::Transformer(expected));
        let refused = of("network = \"egnn\"").unwrap_err().to_string();
        assert!(refused.contains("particles"), "{refused}");
        let refused = of("particles = 3\nnetwork = \"mlp\"").unwrap_err();
        assert!(refused.to_string().contains("pairs"), "{refused}");
    }
    #[test]
    fn states_have_two_networks() {
        let of = |text: &str| {
            let mut settings: Settings = toml::from_str(text).unwrap();
            NetworkChoice::over_sites(&mut settings).map_err(|refused| refused.to_string())
        };
        assert_eq!(of("").unwrap(), SitesNetwork::default());
        let asked = of("width = 24\nnetwork = { kind = \"transformer\", heads = 2 }");
        let expected = SitesNetwork::Transformer {
            width: 24,
            depth: 2,
            heads: 2,
            head_width: SitesNetwork::HEAD_WIDTH,
        };
        assert_eq!(asked.unwrap(), expected);
        let refused = of("network = \"egnn\"").unwrap_err();
        assert!(refused.contains("transformer"), "{refused}");
        let refused = of("network = { kind = \"transformer\", types = [0, 1] }").unwrap_err();
        assert!(refused.contains("types"), "{refused}");
    }
}
