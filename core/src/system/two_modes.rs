//! Two modes in the plane with weights 2/3 and 1/3: the smallest target on which score matching is blind to the weights.

use super::{Covariance, GaussianMixture};
use crate::Result;

/// N((-1, 0.2), 0.03 I) with weight 2/3 and N((1.2, -0.4), 0.05 I) with weight 1/3; nothing in it is symmetric.
pub fn two_modes() -> Result<GaussianMixture> {
    GaussianMixture::new(
        2,
        vec![2.0, 1.0],
        vec![-1.0, 0.2, 1.2, -0.4],
        Covariance::Isotropic(vec![0.03, 0.05]),
    )
}
