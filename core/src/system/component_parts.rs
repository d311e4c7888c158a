//! What every mixture tells of its components: methods over the fields `dim`, `weights` and `means`, said once.

/// The methods, for use inside an `impl`.
macro_rules! component_parts {
    () => {
        /// Dimension of a point.
        pub fn dim(&self) -> usize {
            self.dim
        }

        /// Number of components.
        pub fn components(&self) -> usize {
            self.weights.len()
        }

        /// Weights, summing to 1.
        pub fn weights(&self) -> &[f64] {
            &self.weights
        }

        /// All means, row after row.
        pub fn means(&self) -> &[f64] {
            &self.means
        }

        /// Mean of component k.
        pub fn component_mean(&self, k: usize) -> &[f64] {
            &self.means[k * self.dim..][..self.dim]
        }
    };
}
pub(crate) use component_parts;
