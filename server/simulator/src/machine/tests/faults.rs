//! Kernels that fail.
