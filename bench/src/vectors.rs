//! The index of vectors beside a plain scan: recall and time, with filters.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use postrider::embed::chunk::{self, Limits};
use postrider::embed::{Builtin, Model, Role};
use postrider::ids::Ordinal;
use postrider::projections::generation::disk_bytes;
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

/// Sum of products of signed bytes, as a bare scan would have it.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
fn dot_bytes(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

/// The models named, one behind the other: their vectors together are one of all their dimensions.
fn models(names: &str) -> Fallible<Vec<Arc<Model>>> {
    let model = |name: &str| {
        Ok(match name {
            "static-128" => Builtin::Static128.model()?,
            "minilm-l6" => Builtin::MinilmL6.model()?,
            folder => Arc::new(Model::open(Path::new(folder))?),
        })
    };
    names.split(',').map(model).collect()
}

fn embedded(models: &[Arc<Model>], texts: &[&str]) -> Vec<Vec<f32>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = texts.len().div_ceil(threads).max(1);
    let part = |texts: &[&str]| {
        let mut together = vec![Vec::new(); texts.len()];
        for model in models {
            for (vector, one) in together.iter_mut().zip(model.embed(Role::Passage, texts)) {
                match one {
                    Ok(one) => vector.extend(one.values),
                    Err(_) => vector.extend(vec![0.0; model.profile().dimensions as usize]),
                }
            }
        }
        for vector in &mut together {
            let length = dot(vector, vector).sqrt();
            vector.iter_mut().for_each(|value| *value /= length.max(f32::MIN_POSITIVE));
        }
        together
    };
    std::thread::scope(|scope| {
        let running: Vec<_> =
            texts.chunks(share).map(|texts| scope.spawn(|| part(texts))).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("a model died")).collect()
    })
}

/// Fills an index with `count` passages of a source (each as a message of its own) and compares with
/// scans of the same vectors as f32 and as bytes. `trees`: with trees over all of them.
pub(crate) fn run(
    source: &Path,
    scratch: &Path,
    count: usize,
    names: &str,
    trees: bool,
) -> Fallible<Figures> {
    let models = models(names)?;
    let texts = passages(source, count + QUERIES)?;
    let parts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let began = Instant::now();
    let vectors = embedded(&models, &parts);
    let embedding = began.elapsed().as_secs_f64();
    // Every so manieth is asked for instead of being in the index.
    let every = vectors.len() / QUERIES;
    let (mut asked, mut kept) = (Vec::new(), Vec::new());
    for (at, vector) in vectors.into_iter().enumerate() {
        if at % every == 0 && asked.len() < QUERIES {
            asked.push(vector)
        } else {
            kept.push(vector)
        }
    }
    kept.truncate(count);
    let dimensions: u32 = models.iter().map(|model| model.profile().dimensions).sum();
    let from = if trees { 1 } else { u32::MAX };
    let index = Vectors::open(scratch, dimensions)?.with_trees_from(from);
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
    let began = Instant::now();
    if trees {
        index.build_trees(|| false)?;
    }
    let building = began.elapsed().as_secs_f64();
    let flat: Vec<f32> = kept.iter().flatten().copied().collect();
    let width = dimensions as usize;
    let mut figures = Figures::new();
    figures.insert("passages".into(), kept.len().into());
    figures.insert("dimensions".into(), dimensions.into());
    figures.insert("embedded_per_second".into(), rounded(parts.len() as f64 / embedding).into());
    figures.insert("added_per_second".into(), rounded(kept.len() as f64 / filling).into());
    figures.insert("index_bytes".into(), disk_bytes(scratch).into());
    if trees {
        figures.insert("trees_built_seconds".into(), rounded(building).into());
    }
    let mut bytes: Vec<i8> = Vec::with_capacity(flat.len());
    let mut steps: Vec<f32> = Vec::with_capacity(kept.len());
    for row in flat.chunks_exact(width) {
        let (quantised, step) = quantise(row);
        bytes.extend(quantised);
        steps.push(step);
    }
    for (name, one_in) in [("0.1%", 1_000_u32), ("1%", 100), ("10%", 10), ("50%", 2), ("100%", 1)] {
        // Spread over the whole, as the messages of a sender are.
        let among: RoaringBitmap = (0..kept.len() as u32)
            .filter(|n| n.wrapping_mul(2_654_435_761) % one_in == 0)
            .collect();
        // One after the other over all queries, so that none throws the memory of another out of
        // the processor's caches.
        let (mut own, mut plain, mut bare) = (Vec::new(), Vec::new(), Vec::new());
        let mut near = Vec::new();
        for query in &asked {
            let began = Instant::now();
            near.push(index.nearest(query, &among, NEAR)?);
            own.push(began.elapsed().as_secs_f64() * 1e3);
        }
        let mut found = 0;
        for (query, near) in asked.iter().zip(&near) {
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
        for query in &asked {
            let began = Instant::now();
            let mut rough: Vec<(f32, u32)> = Vec::with_capacity(kept.len());
            let (quantised, _) = quantise(query);
            for ((row, step), n) in bytes.chunks_exact(width).zip(&steps).zip(0_u32..) {
                #[expect(unsafe_code, reason = "a bare scan uses what the processor has")]
                // SAFETY: the benchmark is run on machines with AVX2 alone.
                let score = unsafe { dot_bytes(&quantised, row) };
                rough.push((score as f32 * step, n));
            }
            let most = (NEAR * 4).min(rough.len()) - 1;
            rough.select_nth_unstable_by(most, |a, b| b.0.total_cmp(&a.0));
            std::hint::black_box(&rough);
            bare.push(began.elapsed().as_secs_f64() * 1e3);
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
                "scan_bytes_p50_ms": rounded(at(&mut bare, 50)),
            }),
        );
    }
    Ok(figures)
}

/// So many passages of a source; small ones where it has too few of the usual size, then those of
/// quotes too.
pub(crate) fn passages(source: &Path, count: usize) -> Fallible<Vec<String>> {
    let mut texts: Vec<String> = Vec::new();
    for (tokens, quotes) in [(256, false), (128, false), (64, false), (64, true)] {
        let limits = Limits::of_model(tokens);
        texts.clear();
        let mut seen = Seen::default();
        corpus::each(source, |entry| {
            let message = corpus::message(&entry);
            if seen.is_new(&message) {
                let text = if quotes { message.text.clone() } else { message.new_text() };
                for chunk in chunk::chunks(&message.subject, &text, limits) {
                    texts.push(chunk::passage(&message.subject, &text, &chunk, limits));
                }
            }
            Ok(texts.len() < count)
        })?;
        if texts.len() >= count {
            break;
        }
    }
    texts.truncate(count);
    Ok(texts)
}

fn quantise(vector: &[f32]) -> (Vec<i8>, f32) {
    let most = vector.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let step = (most / 127.0).max(f32::MIN_POSITIVE);
    (vector.iter().map(|value| (value / step).round() as i8).collect(), step)
}
