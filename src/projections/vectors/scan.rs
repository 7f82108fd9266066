//! Ranking rows of signed bytes against a query: approximate scores for all, so that only a few
//! need their exact ones.

/// A vector of length 1 as signed bytes, and what one step is worth.
pub(super) fn quantise(vector: &[f32]) -> (Vec<i8>, f32) {
    let most = vector.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    if most <= 0.0 {
        return (vec![0; vector.len()], 0.0);
    }
    let step = most / 127.0;
    (vector.iter().map(|value| (value / step).round() as i8).collect(), step)
}

/// Sum of products; rows are far shorter than it takes to overflow.
#[inline(always)]
fn sum_of_products(a: &[i8], b: &[u8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(b.cast_signed())).sum()
}

/// The same in steps of 32 bytes. The processor multiplies unsigned by signed bytes alone, so the
/// signs of `a` go over to `b`; two products of at most 127 · 128 fit into 16 bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_of_products_wide(a: &[i8], b: &[u8]) -> i32 {
    use std::arch::x86_64::{
        __m256i, _mm256_abs_epi8, _mm256_add_epi32, _mm256_loadu_si256, _mm256_madd_epi16,
        _mm256_maddubs_epi16, _mm256_set1_epi16, _mm256_setzero_si256, _mm256_sign_epi8,
        _mm256_storeu_si256,
    };
    let (a, a_rest) = a.as_chunks::<32>();
    let (b, b_rest) = b.as_chunks::<32>();
    let mut sums = _mm256_setzero_si256();
    for (a, b) in a.iter().zip(b) {
        #[expect(unsafe_code, reason = "loads of 32 bytes that are there")]
        // SAFETY: both are 32 bytes long; unaligned loads.
        let (a, b) = unsafe {
            let load = |bytes: *const __m256i| _mm256_loadu_si256(bytes);
            (load(a.as_ptr().cast()), load(b.as_ptr().cast()))
        };
        let products = _mm256_maddubs_epi16(_mm256_abs_epi8(a), _mm256_sign_epi8(b, a));
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(products, _mm256_set1_epi16(1)));
    }
    let mut lanes = [0_i32; 8];
    #[expect(unsafe_code, reason = "a store of 32 bytes that are there")]
    // SAFETY: eight times four bytes; an unaligned store.
    unsafe {
        _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sums);
    }
    lanes.iter().sum::<i32>() + sum_of_products(a_rest, b_rest)
}

/// The sum of products as this processor computes it fastest; asked for once a scan.
pub(super) fn dot_bytes() -> impl Fn(&[i8], &[u8]) -> i32 {
    #[cfg(target_arch = "x86_64")]
    let wide = is_x86_feature_detected!("avx2");
    move |a, b| {
        #[cfg(target_arch = "x86_64")]
        if wide {
            #[expect(unsafe_code, reason = "asks for AVX2, which was seen to be there")]
            // SAFETY: detected above.
            return unsafe { sum_of_products_wide(a, b) };
        }
        sum_of_products(a, b)
    }
}

/// Sum of products, in eight sums side by side: one after the other, each would wait for the last.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0_f32; 8];
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// The best rows seen, by approximate score; equal ones by row.
pub(super) struct Best {
    kept: Vec<(f32, u32)>,
    limit: usize,
    /// What a row must beat once enough are kept.
    least: f32,
}

impl Best {
    pub(super) fn new(limit: usize) -> Self {
        Self { kept: Vec::with_capacity(limit * 2), limit, least: f32::NEG_INFINITY }
    }

    #[inline]
    pub(super) fn offer(&mut self, score: f32, row: u32) {
        if score < self.least {
            return;
        }
        self.kept.push((score, row));
        if self.kept.len() >= self.limit * 2 {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        if self.kept.len() > self.limit {
            self.kept
                .select_nth_unstable_by(self.limit, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            self.kept.truncate(self.limit);
            let least = self.kept.iter().map(|(score, _)| *score);
            self.least = least.fold(f32::INFINITY, f32::min);
        }
    }

    /// Takes what another saw.
    pub(super) fn merge(&mut self, other: Self) {
        for (score, row) in other.kept {
            self.offer(score, row);
        }
    }

    /// Rows, in their own order.
    pub(super) fn rows(mut self) -> Vec<u32> {
        self.shrink();
        let mut rows: Vec<u32> = self.kept.into_iter().map(|(_, row)| row).collect();
        rows.sort_unstable();
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_whatever_their_order() {
        let scores: Vec<f32> = (0..1_000_u32).map(|n| ((n * 7_919) % 1_009) as f32).collect();
        let mut best = Best::new(10);
        for (row, score) in scores.iter().enumerate() {
            best.offer(*score, row as u32);
        }
        let mut wanted: Vec<u32> = (0..1_000).collect();
        wanted.sort_by(|a, b| scores[*b as usize].total_cmp(&scores[*a as usize]));
        wanted.truncate(10);
        wanted.sort_unstable();
        assert_eq!(best.rows(), wanted);
    }

    #[test]
    fn bytes_are_near_what_they_stand_for() {
        let a: Vec<f32> = (0..384).map(|n| ((n * 37 % 101) as f32 - 50.0) / 600.0).collect();
        let b: Vec<f32> = (0..384).map(|n| ((n * 53 % 97) as f32 - 40.0) / 600.0).collect();
        let ((qa, sa), (qb, sb)) = (quantise(&a), quantise(&b));
        let qb: Vec<u8> = qb.iter().map(|byte| byte.cast_unsigned()).collect();
        let near = dot_bytes()(&qa, &qb) as f32 * sa * sb;
        assert!((near - dot(&a, &b)).abs() < 0.01);
        assert_eq!(dot_bytes()(&qa, &qb), sum_of_products(&qa, &qb));
        for length in [0, 1, 31, 32, 33, 100] {
            let (a, b) = (&qa[..length], &qb[..length]);
            assert_eq!(dot_bytes()(a, b), sum_of_products(a, b), "{length}");
        }
        let (most, least) = (vec![127_i8; 64], vec![127_u8; 64]);
        assert_eq!(dot_bytes()(&most, &least), 64 * 127 * 127);
        let (most, least) = (vec![-127_i8; 64], vec![129_u8; 64]);
        assert_eq!(dot_bytes()(&most, &least), 64 * 127 * 127, "two negative ones");
        assert_eq!(quantise(&[0.0; 3]), (vec![0; 3], 0.0));
    }
}
