//! Blocks of matrix products for AVX-512 in single precision, in instructions.
//!
//! Written over register types, the compiler moves the broadcasts of several steps and rows together, has no registers for them and puts them
//! into memory and back, which leaves 60 % of this speed. Twelve rows by two registers are 24 sums; with two registers of the
//! matrix's line and one of an element they fill the register file, and their panel divides the usual widths.

use super::gemm::Operands;
use std::arch::asm;
use std::arch::x86_64::*;

/// Most rows of a block.
const MOST: usize = 12;

/// Defines the sums of a block, `sum_p a[i * row + p * step] * b[p * ldb + j]`, of every number of rows, for one and for two registers of
/// columns. Each row has the pointer and the distance from it at which it stands, and the registers of its sums.
macro_rules! sums {
    (@next [$($before:tt)*] []) => {};
    (@next [$($before:tt)*] [($i:literal $one:ident $two:ident $at:tt) $($rest:tt)*]) => {
        sums!(@define $one $two { $i + 1 } $($before)* ($i $at));
        sums!(@next [$($before)* ($i $at)] [$($rest)*]);
    };
    (@define $one:ident $two:ident $count:block $(($i:literal [$base:literal $away:literal $low:tt $high:tt]))*) => {
        /// # Safety
        /// The caller's shapes; at least one step.
        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn $one(o: &Operands<f32>) -> [[__m512; 1]; $count] {
            let mut sums = [[_mm512_setzero_ps(); 1]; $count];
            // SAFETY: reads what the shapes say; changes the registers it names.
            unsafe {
                asm!(
                    // Some blocks have no use for all of the distances.
                    "/* {row} {three} */",
                    "2:",
                    "vmovups zmm29, [{line}]",
                    $(concat!("vfmadd231ps ", $low, ", zmm29, dword ptr [{", $base, "}", $away, "]{{1to16}}"),)*
                    "add {line}, {ldb}",
                    "add {first}, {step}",
                    "add {fifth}, {step}",
                    "add {ninth}, {step}",
                    "dec {k}",
                    "jnz 2b",
                    line = inout(reg) o.b => _,
                    ldb = in(reg) 4 * o.ldb,
                    first = inout(reg) o.a => _,
                    fifth = inout(reg) o.a.wrapping_add(4 * o.row) => _,
                    ninth = inout(reg) o.a.wrapping_add(8 * o.row) => _,
                    row = in(reg) 4 * o.row,
                    three = in(reg) 12 * o.row,
                    step = in(reg) 4 * o.step,
                    k = inout(reg) o.k => _,
                    out("zmm29") _,
                    $(inout($low) sums[$i][0],)*
                    options(readonly, nostack),
                );
            }
            sums
        }
        /// # Safety
        /// As above.
        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn $two(o: &Operands<f32>) -> [[__m512; 2]; $count] {
            let mut sums = [[_mm512_setzero_ps(); 2]; $count];
            // SAFETY: as above.
            unsafe {
                asm!(
                    "/* {row} {three} */",
                    "2:",
                    "vmovups zmm29, [{line}]",
                    "vmovups zmm30, [{line} + 64]",
                    $(
                        concat!("vbroadcastss zmm31, dword ptr [{", $base, "}", $away, "]"),
                        concat!("vfmadd231ps ", $low, ", zmm31, zmm29"),
                        concat!("vfmadd231ps ", $high, ", zmm31, zmm30"),
                    )*
                    "add {line}, {ldb}",
                    "add {first}, {step}",
                    "add {fifth}, {step}",
                    "add {ninth}, {step}",
                    "dec {k}",
                    "jnz 2b",
                    line = inout(reg) o.b => _,
                    ldb = in(reg) 4 * o.ldb,
                    first = inout(reg) o.a => _,
                    fifth = inout(reg) o.a.wrapping_add(4 * o.row) => _,
                    ninth = inout(reg) o.a.wrapping_add(8 * o.row) => _,
                    row = in(reg) 4 * o.row,
                    three = in(reg) 12 * o.row,
                    step = in(reg) 4 * o.step,
                    k = inout(reg) o.k => _,
                    out("zmm29") _, out("zmm30") _, out("zmm31") _,
                    $(inout($low) sums[$i][0], inout($high) sums[$i][1],)*
                    options(readonly, nostack),
                );
            }
            sums
        }
    };
    ($($row:tt)*) => { sums!(@next [] [$($row)*]); };
}

sums! {
    (0 one1 two1 ["first" "" "zmm0" "zmm1"])
    (1 one2 two2 ["first" " + {row}" "zmm2" "zmm3"])
    (2 one3 two3 ["first" " + 2*{row}" "zmm4" "zmm5"])
    (3 one4 two4 ["first" " + {three}" "zmm6" "zmm7"])
    (4 one5 two5 ["fifth" "" "zmm8" "zmm9"])
    (5 one6 two6 ["fifth" " + {row}" "zmm10" "zmm11"])
    (6 one7 two7 ["fifth" " + 2*{row}" "zmm12" "zmm13"])
    (7 one8 two8 ["fifth" " + {three}" "zmm14" "zmm15"])
    (8 one9 two9 ["ninth" "" "zmm16" "zmm17"])
    (9 one10 two10 ["ninth" " + {row}" "zmm18" "zmm19"])
    (10 one11 two11 ["ninth" " + 2*{row}" "zmm20" "zmm21"])
    (11 one12 two12 ["ninth" " + {three}" "zmm22" "zmm23"])
}

/// Puts the sums of a block where they belong, `width` columns of them.
///
/// # Safety
/// The caller's shapes.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn finish<const MR: usize, const NV: usize>(
    o: &Operands<f32>,
    sums: [[__m512; NV]; MR],
    width: usize,
) {
    let whole = width == 16 * NV;
    for v in 0..NV {
        let left = width.saturating_sub(16 * v).min(16);
        let mask = ((1u32 << left) - 1) as __mmask16;
        let mut c = o.c.wrapping_add(16 * v);
        // SAFETY: the columns of the mask are there.
        unsafe {
            let bias = match (o.accumulate, o.bias.is_null()) {
                (false, false) => Some(_mm512_maskz_loadu_ps(mask, o.bias.wrapping_add(16 * v))),
                _ => None,
            };
            for sums in &sums {
                let mut sum = sums[v];
                if let Some(bias) = bias {
                    sum = _mm512_add_ps(sum, bias);
                }
                if whole {
                    if o.accumulate {
                        sum = _mm512_add_ps(_mm512_loadu_ps(c), sum);
                    }
                    _mm512_storeu_ps(c, sum);
                } else {
                    if o.accumulate {
                        sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, c), sum);
                    }
                    _mm512_mask_storeu_ps(c, mask, sum);
                }
                c = c.wrapping_add(o.ldc);
            }
        }
    }
}

/// `m` rows against one panel of at most 32 columns, in blocks of nearly the same number of rows: one of few rows would wait for its own sums.
///
/// # Safety
/// The machine has AVX-512; the operands are as large as their shape says.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn strip(m: usize, o: Operands<f32>, width: usize) {
    let blocks = m.div_ceil(MOST);
    let mut i = 0;
    for block in 0..blocks {
        let rows = (m - i).div_ceil(blocks - block);
        // SAFETY: the caller's promise.
        unsafe {
            let o = Operands {
                a: o.a.add(i * o.row),
                c: o.c.add(i * o.ldc),
                ..o
            };
            if o.accumulate {
                // Accumulators of many parameters come from afar; they are asked for before the sum begins.
                for i in 0..rows {
                    _mm_prefetch::<_MM_HINT_T0>(o.c.add(i * o.ldc).cast());
                }
            }
            macro_rules! block {
                ($($rows:literal $one:ident $two:ident),*) => {
                    match (rows, width > 16) {
                        $(($rows, false) => finish::<$rows, 1>(&o, $one(&o), width),)*
                        $(($rows, true) => finish::<$rows, 2>(&o, $two(&o), width),)*
                        _ => unreachable!("at most {MOST} rows"),
                    }
                };
            }
            #[rustfmt::skip]
            block!(
                1 one1 two1, 2 one2 two2, 3 one3 two3, 4 one4 two4, 5 one5 two5, 6 one6 two6,
                7 one7 two7, 8 one8 two8, 9 one9 two9, 10 one10 two10, 11 one11 two11, 12 one12 two12
            );
        }
        i += rows;
    }
}
