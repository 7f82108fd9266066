//! The index of vectors beside a plain scan: recall and time, with filters.

use std::path::Path;
use std::time::Instant;

use postrider::embed::chunk::{self, Limits};
use postrider::embed::{Builtin, Role};
use postrider::ids::Ordinal;
use postrider::projections::vectors::{Stored, Vectors};
use roaring::RoaringBitmap;

use crate::Fallible;
use crate::corpus::{self, Seen};
use crate::results::{Figures, rounded};

/// Queries asked for each filter.
const QUERIES: usize = 100;
/// Neighbours asked for.
const NEAR: usize = 100;

fn dot(a: &[f32], b: &[f32]) -> f32 {
    // In eight sums, so that the compiler may keep them in one register.
    let mut sums = [0.0_f32; 8];
    for (a, b) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        for at in 0..8 {
            sums[at] += a[at] * b[at];
        }
    }
    sums.iter().sum()
}

/// Fills an index with `count` passages of a source (each as a message of its own, by the static
/// model) and compares with a scan of the same vectors as f32.
pub(crate) fn run(source: &Path, scratch: &Path, count: usize) -> Fallible<Figures> {
    let model = Builtin::Static128.model()?;
    // Small passages where the source has too few of the usual size.
    let limits = if count > 150_000 { Limits::of_model(64) } else { model.profile().limits() };
    let mut texts: Vec<String> = Vec::new();
    let mut seen = Seen::default();
    corpus::each(source, |entry| {
        let message = corpus::message(&entry);
        if seen.is_new(&message) {
            let text = message.new_text();
            for chunk in chunk::chunks(&message.subject, &text, limits) {
                texts.push(chunk::passage(&message.subject, &text, &chunk, limits));
            }
        }
        Ok(texts.len() < count + QUERIES)
    })?;
    let parts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let began = Instant::now();
    let vectors = model.embed(Role::Passage, &parts).into_iter().flatten();
    let vectors: Vec<Vec<f32>> = vectors.map(|vector| vector.values).collect();
    let embedding = began.elapsed().as_secs_f64();
    // Every so manieth is asked for instead of being in the index.
    let every = vectors.len() / QUERIES;
    let (mut asked, mut kept) = (Vec::new(), Vec::new());
    for (at, vector) in vectors.into_iter().enumerate() {
        if at % every == 0 && asked.len() < QUERIES { asked.push(vector) } else { kept.push(vector) }
    }
    kept.truncate(count);
    let dimensions = model.profile().dimensions;
    let index = Vectors::open(scratch, dimensions)?;
    let began = Instant::now();
    for (part, vectors) in kept.chunks(4_096).enumerate() {
        let first = (part * 4_096) as u32;
        let messages: Vec<(Ordinal, Stored)> = (first..)
            .zip(vectors)
            .map(|(n, vector)| {
                let one = std::slice::from_ref(vector);
                (Ordinal(n), Stored::new([0; 16], vec![(0, 1)], one))
            })
            .collect();
        index.add(&messages)?;
    }
    let filling = began.elapsed().as_secs_f64();
    let flat: Vec<f32> = kept.iter().flatten().copied().collect();
    let width = dimensions as usize;
    let mut figures = Figures::new();
    figures.insert("passages".into(), kept.len().into());
    figures.insert("dimensions".into(), dimensions.into());
    figures.insert("embedded_per_second".into(), rounded(parts.len() as f64 / embedding).into());
    figures.insert("added_per_second".into(), rounded(kept.len() as f64 / filling).into());
    let bytes = std::fs::metadata(scratch.join("data.mdb"))?.len();
    figures.insert("index_bytes".into(), bytes.into());
    for (name, one_in) in
        [("0.1%", 1_000_u32), ("1%", 100), ("10%", 10), ("50%", 2), ("100%", 1)]
    {
        // Spread over the whole, as the messages of a sender are.
        let among: RoaringBitmap = (0..kept.len() as u32)
            .filter(|n| n.wrapping_mul(2_654_435_761) % one_in == 0)
            .collect();
        let (mut own, mut plain, mut found) = (Vec::new(), Vec::new(), 0_usize);
        for query in &asked {
            let began = Instant::now();
            let near = index.nearest(query, &among, NEAR)?;
            own.push(began.elapsed().as_secs_f64() * 1e3);
            let began = Instant::now();
            let mut scored: Vec<(f32, u32)> = flat
                .chunks_exact(width)
                .zip(0_u32..)
                .filter(|(_, n)| among.contains(*n))
                .map(|(row, n)| (dot(query, row), n))
                .collect();
            let wanted = NEAR.min(scored.len());
            if wanted > 0 && wanted < scored.len() {
                scored.select_nth_unstable_by(wanted - 1, |a, b| b.0.total_cmp(&a.0));
            }
            scored.truncate(wanted);
            plain.push(began.elapsed().as_secs_f64() * 1e3);
            let best: RoaringBitmap = scored.iter().map(|(_, n)| *n).collect();
            found += near.iter().filter(|near| best.contains(near.ordinal.0)).count();
        }
        let wanted = asked.len() * NEAR.min(among.len() as usize);
        let at = |times: &mut Vec<f64>, percent: usize| {
            times.sort_by(f64::total_cmp);
            times[(times.len() * percent).div_ceil(100).max(1) - 1]
        };
        figures.insert(
            name.into(),
            serde_json::json!({
                "recall_at_100": rounded(found as f64 / wanted.max(1) as f64),
                "p50_ms": rounded(at(&mut own, 50)),
                "p95_ms": rounded(at(&mut own, 95)),
                "scan_f32_p50_ms": rounded(at(&mut plain, 50)),
            }),
        );
    }
    Ok(figures)
}
