//! Kernels: the innermost loops, compiled for AVX-512, AVX2 and portable code from one source and chosen at run time.
//!
//! All `unsafe` of the crate lives in this folder and in the tile loop of [`super::run`]. The loops work on raw pointers
//! because an element-wise result may overwrite its own operand (the plan shares buffers); they therefore load a whole
//! block before storing it, which is correct under exact aliasing and vectorises without overlap checks.

pub(crate) mod attention;
mod columns;
pub(crate) mod dispatch;
pub(crate) mod elementwise;
pub(crate) mod gemm;
mod real;
pub(crate) mod rows;
pub(crate) mod softmax;
pub(crate) mod sums;
pub mod vector;
#[cfg(target_arch = "x86_64")]
mod wide;

pub use real::Real;

use std::fmt;

/// What a kernel is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Path {
    /// Whatever the compiler's base target offers (SSE2 on x86-64); no fused multiply-add.
    Portable,
    /// AVX2 with FMA: 8 f32 lanes.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    Avx2,
    /// AVX-512 F/BW/DQ/VL: 16 f32 lanes.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    Avx512,
}

/// Instruction set a kernel is compiled for. A value says that this machine has it: there is no other way to get one than to ask the
/// machine.
///
/// ```compile_fail
/// let wishful = diffclf::engine::Isa::Avx512;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Isa(Path);

impl Isa {
    /// Runs everywhere.
    pub const PORTABLE: Isa = Isa(Path::Portable);

    /// Names of all there are, the widest last; a machine may lack some.
    pub const NAMES: [&'static str; 3] = ["portable", "avx2", "avx512"];

    /// The widest instruction set of this machine.
    pub fn detect() -> Isa {
        *Isa::available().last().unwrap_or(&Isa::PORTABLE)
    }

    /// Every instruction set this machine can run, narrowest first.
    pub fn available() -> Vec<Isa> {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            let mut sets = vec![Isa::PORTABLE];
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                sets.push(Isa(Path::Avx2));
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                {
                    sets.push(Isa(Path::Avx512));
                }
            }
            sets
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        {
            vec![Isa::PORTABLE]
        }
    }

    /// The instruction set of that name, if this machine can run it.
    pub fn by_name(name: &str) -> crate::Result<Isa> {
        let found = Isa::available()
            .into_iter()
            .find(|isa| isa.to_string() == name);
        found.ok_or_else(|| crate::Error::Value {
            name: "kernel path",
            found: name.to_string(),
            expected: format!(
                "one that this machine can run: {}",
                Isa::available()
                    .iter()
                    .map(Isa::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        })
    }

    /// Columns of one packed panel of a matrix operand.
    pub(crate) fn panel(self) -> usize {
        match self.0 {
            Path::Avx512 => 32,
            _ => 16,
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Isa::NAMES[self.0 as usize])
    }
}

/// Defines kernels once and compiles each for every instruction set; `FMA` tells the body whether fused
/// multiply-add is an instruction there (elsewhere it would be a slow library call).
macro_rules! kernels {
    ($( $(#[$meta:meta])* fn $name:ident<$t:ident>($($arg:ident: $ty:ty),* $(,)?) $body:block )*) => { $(
        $(#[$meta])*
                pub(crate) unsafe fn $name<$t: $crate::engine::kernel::Real>(isa: $crate::engine::kernel::Isa, $($arg: $ty),*) {
            #[inline(always)]
                        unsafe fn body<$t: $crate::engine::kernel::Real, const FMA: bool>($($arg: $ty),*) { unsafe { $body } }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
                        unsafe fn avx2<$t: $crate::engine::kernel::Real>($($arg: $ty),*) { unsafe { body::<$t, true>($($arg),*) } }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                        unsafe fn avx512<$t: $crate::engine::kernel::Real>($($arg: $ty),*) { unsafe { body::<$t, true>($($arg),*) } }
            // SAFETY: an Isa other than Portable exists only where `Isa::available` found its features; the pointers
            // are the caller's promise.
            unsafe {
                match isa.0 {
                    #[cfg(target_arch = "x86_64")]
                    $crate::engine::kernel::Path::Avx512 => avx512::<$t>($($arg),*),
                    #[cfg(target_arch = "x86_64")]
                    $crate::engine::kernel::Path::Avx2 => avx2::<$t>($($arg),*),
                    _ => body::<$t, false>($($arg),*),
                }
            }
        }
    )* };
}
pub(crate) use kernels;

/// Flushes denormal numbers to zero on this thread until dropped: they would slow a step a hundredfold and carry no
/// information at the precision of training. It surrounds kernels alone: code of callers runs with the bits it expects.
pub(crate) struct FlushDenormals {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    saved: u32,
}

impl FlushDenormals {
    /// Flush-to-zero and denormals-are-zero bits of MXCSR.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    const FLUSH: u32 = 0x8040;

    pub(crate) fn new() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            let mut saved: u32 = 0;
            // SAFETY: reads and writes this thread's MXCSR; `drop` restores it.
            unsafe {
                std::arch::asm!("stmxcsr [{}]", in(reg) &mut saved, options(nostack));
                let flushed = saved | Self::FLUSH;
                std::arch::asm!("ldmxcsr [{}]", in(reg) &flushed, options(nostack));
            }
            FlushDenormals { saved }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        FlushDenormals {}
    }
}

impl Drop for FlushDenormals {
    fn drop(&mut self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: puts back the value that `new` read on this thread (the guard is not Send).
        unsafe {
            std::arch::asm!("ldmxcsr [{}]", in(reg) &self.saved, options(nostack));
        }
    }
}
