//! Functions of single values that a model applies to millions of them: written without branches
//! or calls, so that the compiler computes several at once.

/// e to the `x`, to about 1e-7 of the value; 0 and a huge value where f32 ends.
#[inline(always)]
fn exp(x: f32) -> f32 {
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    // ln 2 in two parts, so that `r` is exact (Cody and Waite).
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Adding and taking away 1.5 · 2^23 rounds to the nearest whole number.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let n = (x * LOG2_E + ROUND) - ROUND;
    let r = x - n * LN2_HIGH - n * LN2_LOW;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_2e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let e = p * r * r + r + 1.0;
    // 2^n by its bits.
    e * f32::from_bits(((n as i32 + 127) as u32) << 23)
}

/// The error function, to 1.5e-7 (Abramowitz and Stegun 7.1.26).
#[inline(always)]
fn erf(x: f32) -> f32 {
    let a = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * a);
    let p = 1.061_405_4;
    let p = p * t - 1.453_152_1;
    let p = p * t + 1.421_413_8;
    let p = p * t - 0.284_496_72;
    let p = p * t + 0.254_829_6;
    let y = 1.0 - p * t * exp(-a * a);
    y.copysign(x)
}

/// The Gaussian error linear unit in place, by the error function.
pub(super) fn gelu(values: &mut [f32]) {
    for value in values {
        let x = *value;
        *value = 0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2));
    }
}

/// Softmax of one row in place.
pub(super) fn softmax(row: &mut [f32]) {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for value in row.iter_mut() {
        *value = exp(*value - most);
    }
    let sum: f32 = row.iter().sum();
    let share = 1.0 / sum;
    row.iter_mut().for_each(|value| *value *= share);
}

/// Layer normalisation of one row in place.
pub(super) fn normalise(row: &mut [f32], weight: &[f32], bias: &[f32], epsilon: f32) {
    let count = row.len() as f32;
    let mean = row.iter().sum::<f32>() / count;
    let variance = row.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>() / count;
    let scale = 1.0 / (variance + epsilon).sqrt();
    for ((value, weight), bias) in row.iter_mut().zip(weight).zip(bias) {
        *value = (*value - mean) * scale * weight + bias;
    }
}

/// Scales a vector to length 1; one without length stays as it is, `false` says so.
pub(super) fn to_unit(vector: &mut [f32]) -> bool {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if !(length.is_finite() && length > 1e-12) {
        return false;
    }
    vector.iter_mut().for_each(|value| *value /= length);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_functions() {
        for n in -400..400 {
            let x = n as f32 * 0.05;
            let wanted = x.exp();
            assert!((exp(x) - wanted).abs() <= wanted * 3e-7, "exp {x}");
        }
        // From tables of the error function.
        for (x, wanted) in [
            (0.0, 0.0),
            (0.5, 0.520_499_9),
            (1.0, 0.842_700_8),
            (2.0, 0.995_322_3),
            (-1.0, -0.842_700_8),
        ] {
            assert!((erf(x) - wanted).abs() < 5e-7, "erf {x}: {}", erf(x));
        }
        assert!(exp(-1e9) >= 0.0 && exp(1e9).is_finite());
        let mut row = [1.0, 2.0, 3.0];
        softmax(&mut row);
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6 && row.is_sorted());
        let mut nothing = [0.0; 4];
        assert!(!to_unit(&mut nothing));
    }
}
