//! Runs a loop that is written in safe, plain Rust in the version compiled for a given instruction set.
//!
//! For loops outside this folder: they implement [`Loop`] over slices and fixed blocks of lanes, mark `run` and all that it calls
//! `#[inline(always)]`, and the compiler vectorises each version for its registers.

use super::Isa;
#[cfg(target_arch = "x86_64")]
use super::Path;

/// A loop and its operands. `FMA` tells the body whether fused multiply-add is an instruction.
pub(crate) trait Loop {
    /// The loop.
    fn run<const FMA: bool>(self);
}

/// Runs the loop as compiled for `isa`.
pub(crate) fn dispatch<L: Loop>(isa: Isa, work: L) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn avx2<L: Loop>(work: L) {
        work.run::<true>();
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    fn avx512<L: Loop>(work: L) {
        work.run::<true>();
    }
    // SAFETY: an Isa other than Portable exists only where `Isa::available` found its features.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        match isa.0 {
            Path::Avx512 => return avx512(work),
            Path::Avx2 => return avx2(work),
            Path::Portable => (),
        }
    }
    let _ = isa;
    work.run::<false>();
}
