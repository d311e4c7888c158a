//! BibTeX of the methods a run used, and of no others.

use diffclf::model::Content;
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
    let terms = || stages.iter().flat_map(|stage| &stage.objectives);
    let uses = |name: &str| terms().any(|term| term.objective.objective().name().contains(name));
    let mut entries = Vec::new();
    // All objectives but plain score matching are those of the paper, or compared there.
    if terms().any(|term| term.objective.objective().name() != "dsm") {
        entries.push(DIFFCLF);
    }
    if uses("dsm") {
        entries.push(DSM);
    }
    entries.push(match content.spec.process {
        Process::VariancePreserving(_) | Process::VarianceExploding(_) => SDE,
        Process::Edm(_) => EDM,
        Process::Linear(_) | Process::Trigonometric(_) => INTERPOLANT,
    });
    // The weight of the score loss and the scaling of the network's input and output are those of EDM.
    if uses("dsm") && !content.spec.process.is_interpolant() && entries.last() != Some(&EDM) {
        entries.push(EDM);
    }
    entries.push(ADAM);
    if sampled {
        entries.push(DDIM);
    }
    if judged {
        entries.push(TOMATO);
    }
    if judged && sampled {
        entries.push(ENERGY_DISTANCE);
    }
    entries.join("\n\n")
}
