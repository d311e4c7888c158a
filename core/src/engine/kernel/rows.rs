//! Kernels that move or reduce rows.

use super::elementwise::block_done;
use super::{Real, kernels};

/// Columns from which on a row is worth a call.
const CALL: usize = 16;

/// Columns whose sums stay in registers.
const SUMS: usize = 32;

/// `out[i] = a[pattern[i]]`, or `+=`, for rows of `parts` times `C` columns: loops of known length for narrow rows.
#[inline(always)]
unsafe fn gather_rows<T: Real, const C: usize>(
    parts: usize,
    pattern: &[u32],
    a: *const T,
    out: *mut T,
    accumulate: bool,
) {
    unsafe {
        for (i, &p) in pattern.iter().enumerate() {
            let a = a.add(p as usize * parts * C) as *const [T; C];
            let out = out.add(i * parts * C) as *mut [T; C];
            for k in 0..parts {
                let mut row = *a.add(k);
                if accumulate {
                    let before = *out.add(k);
                    for c in 0..C {
                        row[c] = before[c] + row[c];
                    }
                }
                *out.add(k) = row;
                if C >= CALL {
                    block_done();
                }
            }
        }
    }
}

/// `out += sum_r a[r]` for rows of `C` numbers that are `stride` apart, row after row, with the sums in registers.
#[inline(always)]
unsafe fn add_columns<T: Real, const C: usize>(
    rows: usize,
    stride: usize,
    a: *const T,
    out: *mut T,
) {
    unsafe {
        let out = out as *mut [T; C];
        let mut sums = *out;
        for r in 0..rows {
            let a = *(a.add(r * stride) as *const [T; C]);
            for j in 0..C {
                sums[j] += a[j];
            }
        }
        *out = sums;
    }
}

/// `out += sum_r a[r]`, row after row.
#[inline(always)]
unsafe fn add_rows<T: Real>(rows: usize, cols: usize, a: *const T, out: *mut T) {
    unsafe {
        let mut c = 0;
        while c + SUMS <= cols {
            add_columns::<T, SUMS>(rows, cols, a.add(c), out.add(c));
            c += SUMS;
        }
        while c + 8 <= cols {
            add_columns::<T, 8>(rows, cols, a.add(c), out.add(c));
            c += 8;
        }
        match cols - c {
            0 => (),
            3 => add_columns::<T, 3>(rows, cols, a.add(c), out.add(c)),
            rest => (0..rest)
                .for_each(|j| add_columns::<T, 1>(rows, cols, a.add(c + j), out.add(c + j))),
        }
    }
}

kernels! {
    /// `out[r][c] = s[r]`.
    fn broadcast_columns<T>(rows: usize, cols: usize, s: *const T, out: *mut T) {
        for r in 0..rows {
            std::slice::from_raw_parts_mut(out.add(r * cols), cols).fill(*s.add(r));
        }
    }
    /// `out[r] = b`.
    fn broadcast_rows<T>(rows: usize, cols: usize, b: *const T, out: *mut T) {
        for r in 0..rows {
            std::ptr::copy_nonoverlapping(b, out.add(r * cols), cols);
        }
    }
    /// `out += sum_r a[r]`.
    fn sum_rows<T>(rows: usize, cols: usize, a: *const T, out: *mut T) {
        add_rows(rows, cols, a, out);
    }
    /// `out[r] = ln sum_c exp a[r][c]`, shifted by the row's maximum.
    fn log_sum_exp<T>(rows: usize, cols: usize, a: *const T, out: *mut T) {
        for r in 0..rows {
            let a = std::slice::from_raw_parts(a.add(r * cols), cols);
            let top = a.iter().fold(a[0], |m, &x| if x > m { x } else { m });
            let mut sum = T::ZERO;
            for &x in a {
                sum += (x - top).exp::<FMA>();
            }
            *out.add(r) = top + sum.ln();
        }
    }
    /// `out[r] = softmax a[r]`.
    fn softmax<T>(rows: usize, cols: usize, a: *const T, out: *mut T) {
        for r in 0..rows {
            let (a, out) = (a.add(r * cols), out.add(r * cols));
            let mut top = *a;
            for c in 1..cols {
                let x = *a.add(c);
                top = if x > top { x } else { top };
            }
            let mut sum = T::ZERO;
            for c in 0..cols {
                let e = (*a.add(c) - top).exp::<FMA>();
                *out.add(c) = e;
                sum += e;
            }
            for c in 0..cols {
                *out.add(c) = *out.add(c) / sum;
            }
        }
    }
    /// Columns `start .. start + width` of rows of `cols`.
    fn slice<T>(rows: usize, cols: usize, start: usize, width: usize, a: *const T, out: *mut T) {
        for r in 0..rows {
            // Narrow rows are not worth a call.
            if width < CALL {
                for c in 0..width {
                    *out.add(r * width + c) = *a.add(r * cols + start + c);
                }
            } else {
                std::ptr::copy_nonoverlapping(a.add(r * cols + start), out.add(r * width), width);
            }
        }
    }
    /// Rows of `width` placed at column `start` of rows of `cols`, zero elsewhere.
    fn pad<T>(rows: usize, cols: usize, start: usize, width: usize, a: *const T, out: *mut T) {
        for r in 0..rows {
            if cols < CALL {
                for c in 0..cols {
                    let inside = c >= start && c < start + width;
                    *out.add(r * cols + c) = if inside { *a.add(r * width + c - start) } else { T::ZERO };
                }
                continue;
            }
            let out = std::slice::from_raw_parts_mut(out.add(r * cols), cols);
            out[..start].fill(T::ZERO);
            out[start..start + width].copy_from_slice(std::slice::from_raw_parts(a.add(r * width), width));
            out[start + width..].fill(T::ZERO);
        }
    }
    /// Per unit of the shape `(units, rows of a, columns)`: `out[i] = a[pattern[i]]`; with `accumulate`, added to what `out` holds.
    fn gather<T>(shape: (usize, usize, usize), pattern: &[u32], a: *const T, out: *mut T, accumulate: bool) {
        let (units, from, cols) = shape;
        for u in 0..units {
            let (a, out) = (a.add(u * from * cols), out.add(u * pattern.len() * cols));
            match cols {
                1 => gather_rows::<T, 1>(1, pattern, a, out, accumulate),
                2 => gather_rows::<T, 2>(1, pattern, a, out, accumulate),
                3 => gather_rows::<T, 3>(1, pattern, a, out, accumulate),
                _ if cols.is_multiple_of(SUMS) => {
                    gather_rows::<T, SUMS>(cols / SUMS, pattern, a, out, accumulate)
                }
                _ => gather_rows::<T, 1>(cols, pattern, a, out, accumulate),
            }
        }
    }
    /// Per unit of the shape `(units, rows of out, columns)`: `out[j] = sum over i with pattern[i] = j of a[i]`; added to what `out` holds unless `fresh`.
    fn segment_sum<T>(shape: (usize, usize, usize), pattern: &[u32], a: *const T, out: *mut T, fresh: bool) {
        let (units, to, cols) = shape;
        for u in 0..units {
            let (a, out) = (a.add(u * pattern.len() * cols), out.add(u * to * cols));
            if fresh {
                std::slice::from_raw_parts_mut(out, to * cols).fill(T::ZERO);
            }
            // Rows of one sum often stand together.
            let mut i = 0;
            for run in pattern.chunk_by(|p, q| p == q) {
                add_rows(run.len(), cols, a.add(i * cols), out.add(run[0] as usize * cols));
                i += run.len();
            }
        }
    }
    /// `out[r] = table[index[r]]`; with `accumulate`, added to what `out` holds.
    fn lookup<T>(cols: usize, index: &[u32], table: &[T], out: *mut T, accumulate: bool) {
        for (r, &k) in index.iter().enumerate() {
            let row = &table[k as usize * cols..][..cols];
            let out = std::slice::from_raw_parts_mut(out.add(r * cols), cols);
            if accumulate {
                for (out, &x) in out.iter_mut().zip(row) {
                    *out += x;
                }
            } else {
                out.copy_from_slice(row);
            }
        }
    }
    /// `table[index[r]] += a[r]`.
    fn scatter<T>(cols: usize, index: &[u32], a: *const T, table: &mut [T]) {
        for (r, &k) in index.iter().enumerate() {
            let a = std::slice::from_raw_parts(a.add(r * cols), cols);
            for (out, &a) in table[k as usize * cols..][..cols].iter_mut().zip(a) {
                *out += a;
            }
        }
    }
}
