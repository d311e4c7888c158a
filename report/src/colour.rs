//! Colours: viridis for densities (perceptually uniform, readable without red-green vision and in print), Okabe-Ito
//! for lines.

/// Viridis (S. van der Walt and N. Smith, released as CC0) at every fifteenth of its 256 steps; straight lines in
/// between stay within 5 of 255 of the original.
const VIRIDIS: [[u8; 3]; 18] = [
    [68, 1, 84],
    [72, 23, 105],
    [71, 42, 122],
    [67, 61, 132],
    [61, 78, 138],
    [53, 94, 141],
    [46, 109, 142],
    [41, 123, 142],
    [35, 137, 142],
    [31, 151, 139],
    [33, 165, 133],
    [46, 179, 124],
    [70, 192, 111],
    [101, 203, 94],
    [137, 213, 72],
    [176, 221, 47],
    [216, 226, 25],
    [253, 231, 37],
];

/// Colour number `step` of 256, dark to bright.
pub fn viridis(step: u8) -> [u8; 3] {
    let (below, part) = (usize::from(step / 15), f64::from(step % 15) / 15.0);
    let above = (below + 1).min(VIRIDIS.len() - 1);
    std::array::from_fn(|channel| {
        let (from, to) = (
            f64::from(VIRIDIS[below][channel]),
            f64::from(VIRIDIS[above][channel]),
        );
        (from + part * (to - from)).round() as u8
    })
}

/// Line colours that stay apart for every kind of colour vision, on white and on black (M. Okabe and K. Ito, 2008;
/// without black and yellow, which vanish on one of them).
pub const LINES: [&str; 6] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00",
];

/// Dash patterns in the same order, so that lines differ without colour too.
pub const DASHES: [&str; 6] = ["none", "7 3", "2 3", "9 3 2 3", "4 2", "1 2"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viridis_meets_its_ends_and_grows_brighter() {
        assert_eq!((viridis(0), viridis(255)), ([68, 1, 84], [253, 231, 37]));
        // The original's step 128 is (33, 145, 140).
        assert!(
            viridis(128)
                .iter()
                .zip([33u8, 145, 140])
                .all(|(a, b)| a.abs_diff(b) <= 3)
        );
        let luminance = |[r, g, b]: [u8; 3]| {
            0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b)
        };
        assert!(
            (1..=255).all(|step| luminance(viridis(step)) >= luminance(viridis(step - 1)) - 0.5)
        );
    }
}
