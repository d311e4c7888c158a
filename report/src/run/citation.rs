//! BibTeX of the methods a run used, and of no others.

use diffclf::model::Content;
use diffclf::objective::ObjectiveName;
use diffclf::process::Process;

const DIFFCLF: &str = "\
@inproceedings{ouyang2026diffclf,
  title     = {A Diffusive Classification Loss for Learning Energy-based Generative Models},
  author    = {OuYang, RuiKang and Grenioux, Louis and Hern{\\'a}ndez-Lobato, Jos{\\'e} Miguel},
  booktitle = {International Conference on Machine Learning},
  year      = {2026}
}";
const DSM: &str = "\
@article{vincent2011connection,
  title   = {A Connection Between Score Matching and Denoising Autoencoders},
  author  = {Vincent, Pascal},
  journal = {Neural Computation},
  volume  = {23},
  number  = {7},
  pages   = {1661--1674},
  year    = {2011}
}";
const NOISE_CONTRASTIVE: &str = "\
@inproceedings{gutmann2010nce,
  title     = {Noise-Contrastive Estimation: A New Estimation Principle for Unnormalized Statistical Models},
  author    = {Gutmann, Michael and Hyv{\\\"a}rinen, Aapo},
  booktitle = {International Conference on Artificial Intelligence and Statistics},
  pages     = {297--304},
  year      = {2010}
}";
const BREGMAN: &str = "\
@inproceedings{gutmann2011bregman,
  title     = {Bregman Divergence as General Framework to Estimate Unnormalized Statistical Models},
  author    = {Gutmann, Michael U. and Hirayama, Jun-ichiro},
  booktitle = {Conference on Uncertainty in Artificial Intelligence},
  year      = {2011}
}";
const CTSM: &str = "\
@inproceedings{yu2025density,
  title     = {Density Ratio Estimation with Conditional Probability Paths},
  author    = {Yu, Hanlin and Klami, Arto and Hyv{\\\"a}rinen, Aapo and Korba, Anna and Chehab, Omar},
  booktitle = {International Conference on Machine Learning},
  year      = {2025}
}";
const DRE_INFINITY: &str = "\
@inproceedings{choi2022density,
  title     = {Density Ratio Estimation via Infinitesimal Classification},
  author    = {Choi, Kristy and Meng, Chenlin and Song, Yang and Ermon, Stefano},
  booktitle = {International Conference on Artificial Intelligence and Statistics},
  year      = {2022}
}";
const FOKKER_PLANCK: &str = "\
@inproceedings{lai2023fp,
  title     = {FP-Diffusion: Improving Score-based Diffusion Models by Enforcing the Underlying Score Fokker-Planck Equation},
  author    = {Lai, Chieh-Hsin and Takida, Yuhta and Murata, Naoki and Uesaka, Toshimitsu and Mitsufuji, Yuki and Ermon, Stefano},
  booktitle = {International Conference on Machine Learning},
  year      = {2023}
}";
const BAYES: &str = "\
@article{he2025rne,
  title   = {{RNE}: Plug-and-Play Diffusion Inference-Time Control and Energy-Based Training},
  author  = {He, Jiajun and Hern{\\'a}ndez-Lobato, Jos{\\'e} Miguel and Du, Yuanqi and Vargas, Francisco},
  journal = {arXiv preprint arXiv:2506.05668},
  year    = {2025}
}";
const TARGET_SCORE: &str = "\
@article{debortoli2024target,
  title   = {Target Score Matching},
  author  = {De Bortoli, Valentin and Hutchinson, Michael and Wirnsberger, Peter and Doucet, Arnaud},
  journal = {arXiv preprint arXiv:2402.08667},
  year    = {2024}
}";
const SDE: &str = "\
@inproceedings{song2021score,
  title     = {Score-Based Generative Modeling through Stochastic Differential Equations},
  author    = {Song, Yang and Sohl-Dickstein, Jascha and Kingma, Diederik P. and Kumar, Abhishek and Ermon, Stefano and Poole, Ben},
  booktitle = {International Conference on Learning Representations},
  year      = {2021}
}";
const EDM: &str = "\
@inproceedings{karras2022elucidating,
  title     = {Elucidating the Design Space of Diffusion-Based Generative Models},
  author    = {Karras, Tero and Aittala, Miika and Aila, Timo and Laine, Samuli},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2022}
}";
const INTERPOLANT: &str = "\
@article{albergo2023stochastic,
  title   = {Stochastic Interpolants: A Unifying Framework for Flows and Diffusions},
  author  = {Albergo, Michael S. and Boffi, Nicholas M. and Vanden-Eijnden, Eric},
  journal = {arXiv preprint arXiv:2303.08797},
  year    = {2023}
}";
const ADAM: &str = "\
@inproceedings{kingma2015adam,
  title     = {Adam: A Method for Stochastic Optimization},
  author    = {Kingma, Diederik P. and Ba, Jimmy},
  booktitle = {International Conference on Learning Representations},
  year      = {2015}
}";
const DDIM: &str = "\
@inproceedings{song2021denoising,
  title     = {Denoising Diffusion Implicit Models},
  author    = {Song, Jiaming and Meng, Chenlin and Ermon, Stefano},
  booktitle = {International Conference on Learning Representations},
  year      = {2021}
}";
const ENERGY_DISTANCE: &str = "\
@article{szekely2013energy,
  title   = {Energy Statistics: A Class of Statistics Based on Distances},
  author  = {Sz{\\'e}kely, G{\\'a}bor J. and Rizzo, Maria L.},
  journal = {Journal of Statistical Planning and Inference},
  volume  = {143},
  number  = {8},
  pages   = {1249--1272},
  year    = {2013}
}";
const MBAR: &str = "\
@article{shirts2008statistically,
  title   = {Statistically Optimal Analysis of Samples from Multiple Equilibrium States},
  author  = {Shirts, Michael R. and Chodera, John D.},
  journal = {The Journal of Chemical Physics},
  volume  = {129},
  pages   = {124105},
  year    = {2008}
}";
const TOMATO: &str = "\
@article{chazal2013persistence,
  title   = {Persistence-Based Clustering in Riemannian Manifolds},
  author  = {Chazal, Fr{\\'e}d{\\'e}ric and Guibas, Leonidas J. and Oudot, Steve Y. and Skraba, Primoz},
  journal = {Journal of the ACM},
  volume  = {60},
  number  = {6},
  year    = {2013}
}";

/// The entries for a model; `judged` and `sampled` add those of the diagnosis and of the samples on the page.
pub fn bibtex(content: &Content, judged: bool, sampled: bool) -> String {
    let stages = &content.record.settings.stages;
    let mut entries: Vec<&str> = Vec::new();
    for term in stages.iter().flat_map(|stage| &stage.objectives) {
        entries.extend(sources(&term.objective));
    }
    // The weight of the score loss and the scaling of the network's input and output are those of EDM.
    if entries.contains(&DSM) && !content.spec.process.is_interpolant() {
        entries.push(EDM);
    }
    entries.push(match content.spec.process {
        Process::VariancePreserving(_) | Process::VarianceExploding(_) => SDE,
        Process::Edm(_) => EDM,
        Process::Linear(_) | Process::Trigonometric(_) => INTERPOLANT,
    });
    entries.push(ADAM);
    if sampled {
        entries.push(DDIM);
    }
    if judged {
        entries.extend([TOMATO, MBAR]);
    }
    if judged && sampled {
        entries.push(ENERGY_DISTANCE);
    }
    let mut seen = Vec::new();
    entries.retain(|entry| {
        let new = !seen.contains(entry);
        seen.push(*entry);
        new
    });
    entries.join("\n\n")
}

/// All entries that an objective may cite.
const OBJECTIVES: [&str; 10] = [
    DIFFCLF,
    DSM,
    NOISE_CONTRASTIVE,
    BREGMAN,
    CTSM,
    DRE_INFINITY,
    FOKKER_PLANCK,
    BAYES,
    TARGET_SCORE,
    INTERPOLANT,
];

/// The entries an objective cites.
fn sources(objective: &ObjectiveName) -> impl Iterator<Item = &'static str> {
    let keys = objective.objective().cites().iter();
    keys.filter_map(|key| OBJECTIVES.into_iter().find(|entry| key_of(entry) == *key))
}

/// `KEY` of `@kind{KEY,`.
fn key_of(entry: &str) -> &str {
    let after = entry.split_once('{').map_or("", |(_, rest)| rest);
    after.split_once(',').map_or("", |(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_objective_has_a_source_with_balanced_braces() {
        for objective in ObjectiveName::ALL {
            let keys = objective.objective().cites();
            let entries: Vec<&str> = sources(&objective).collect();
            assert!(
                !keys.is_empty() && entries.len() == keys.len(),
                "{objective} cites {keys:?}; their BibTeX belongs into OBJECTIVES"
            );
            for entry in entries {
                let count = |c: char| entry.matches(c).count();
                assert!(
                    entry.starts_with('@') && count('{') == count('}'),
                    "{entry}"
                );
            }
        }
    }
}
