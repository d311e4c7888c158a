//! The differentiable core.
