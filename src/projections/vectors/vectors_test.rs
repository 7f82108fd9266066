//! The index against a plain scan, and against closing, erasing and filters.

use super::*;

const DIMENSIONS: usize = 48;

/// Vectors that lie in clusters, as those of texts do.
fn vector(n: u32) -> Vec<f32> {
    let mut state = u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % 2_001) as f32 / 1_000.0 - 1.0
    };
    let mut own: Vec<f32> = (0..DIMENSIONS).map(|_| next()).collect();
    own[(n % 7) as usize] += 3.0;
    let length = scan::dot(&own, &own).sqrt();
    own.iter().map(|value| value / length).collect()
}

fn stored(numbers: &[u32]) -> Stored {
    let vectors: Vec<Vec<f32>> = numbers.iter().map(|n| vector(*n)).collect();
    let passages = (0..numbers.len() as u32).map(|at| (at * 10, at * 10 + 9)).collect();
    Stored::new([0; 16], passages, &vectors)
}

/// Two passages a message.
fn messages(range: std::ops::Range<u32>) -> Vec<(Ordinal, Stored)> {
    range.map(|n| (Ordinal(n), stored(&[2 * n, 2 * n + 1]))).collect()
}

fn plainly(query: &[f32], among: impl Iterator<Item = u32>, limit: usize) -> Vec<u32> {
    let half = |n: u32| stored::vector(stored(&[n]).vectors(DIMENSIONS).next().expect("one"));
    let mut scored: Vec<(f32, u32)> = among
        .map(|n| {
            let both = [2 * n, 2 * n + 1].map(|n| scan::dot(query, &half(n)));
            (both[0].max(both[1]), n)
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.truncate(limit);
    scored.into_iter().map(|(_, n)| n).collect()
}

fn found(index: &Vectors, query: &[f32], among: &RoaringBitmap, limit: usize) -> Vec<u32> {
    let near = index.nearest(query, among, limit).expect("answers");
    assert!(near.is_sorted_by(|a, b| a.cosine >= b.cosine));
    near.into_iter().map(|near| near.ordinal.0).collect()
}

#[test]
fn what_is_found_is_what_a_plain_scan_finds() {
    let dir = tempfile::tempdir().expect("temp dir");
    let index = Vectors::open(dir.path(), DIMENSIONS as u32).expect("opens");
    for part in [0..1, 1..130, 130..700] {
        index.add(&messages(part)).expect("added");
    }
    index.add(&messages(0..700)).expect("passed over");
    assert_eq!((index.rows(), index.covered().len()), (1_400, 700));
    let all: RoaringBitmap = (0..700).collect();
    let some: RoaringBitmap = (0..700).filter(|n| n % 9 == 2).collect();
    for n in 0..20 {
        let query = vector(10_000 + n);
        assert_eq!(found(&index, &query, &all, 10), plainly(&query, 0..700, 10), "{n}");
        assert_eq!(found(&index, &query, &some, 10), plainly(&query, some.iter(), 10), "{n}");
    }
    assert!(found(&index, &vector(3), &RoaringBitmap::new(), 10).is_empty());
    let nearest = index.nearest(&vector(801), &all, 1).expect("answers")[0];
    assert_eq!((nearest.ordinal, nearest.passage), (Ordinal(400), (10, 19)));
    assert_eq!(index.nearest(&[1.0], &all, 1).expect("answers"), [], "another space");
}

#[test]
fn erased_messages_are_gone_and_the_rest_survives_a_reopening() {
    let dir = tempfile::tempdir().expect("temp dir");
    let all: RoaringBitmap = (0..600).collect();
    let gone: RoaringBitmap = [3, 127, 128, 599].into_iter().collect();
    {
        let index = Vectors::open(dir.path(), DIMENSIONS as u32).expect("opens");
        index.add(&messages(0..600)).expect("added");
        index.add(&[(Ordinal(600), Stored::new([0; 16], Vec::new(), &[]))]).expect("added");
        assert_eq!(index.held(&gone).expect("reads"), 4);
        index.remove(&gone).expect("removed");
        assert_eq!(index.held(&gone).expect("reads"), 0);
        index.check().expect("whole");
        index.close().expect("closed");
    }
    let index = Vectors::open(dir.path(), DIMENSIONS as u32).expect("opens again");
    assert_eq!(index.covered().len(), 597);
    for n in gone.iter().flat_map(|n| [2 * n, 2 * n + 1]) {
        let query = vector(n);
        let left = (0..600).filter(|n| !gone.contains(*n));
        assert_eq!(found(&index, &query, &all, 5), plainly(&query, left, 5));
    }
    index.add(&messages(3..4)).expect("added again");
    assert_eq!(found(&index, &vector(6), &all, 1), [3]);
}

#[test]
fn a_check_tells_what_is_missing() {
    type Spoil<'s> = &'s dyn Fn(&Vectors, &mut heed::RwTxn<'_>);
    let spoils: [Spoil<'_>; 5] = [
        &|index, wtxn| drop(index.tables.exact.delete(wtxn, &7_u32.to_be_bytes())),
        &|index, wtxn| drop(index.tables.exact.put(wtxn, &7_u32.to_be_bytes(), b"short")),
        &|index, wtxn| drop(index.tables.bytes.put(wtxn, &0_u32.to_be_bytes(), b"short")),
        &|index, wtxn| drop(index.tables.places.delete(wtxn, &0_u32.to_be_bytes())),
        &|index, wtxn| drop(index.tables.meta.put(wtxn, b"rows", &9_u32.to_be_bytes())),
    ];
    for (n, spoil) in spoils.iter().enumerate() {
        let dir = tempfile::tempdir().expect("temp dir");
        let index = Vectors::open(dir.path(), DIMENSIONS as u32).expect("opens");
        index.add(&messages(0..300)).expect("added");
        index.check().expect("whole");
        let mut wtxn = index.env.write_txn().expect("begins");
        spoil(&index, &mut wtxn);
        wtxn.commit().expect("committed");
        assert!(matches!(index.check(), Err(VectorError::Damaged(_))), "{n}");
    }
}

#[test]
fn trees_find_what_a_scan_finds_and_what_came_after_them_is_scanned() {
    let dir = tempfile::tempdir().expect("temp dir");
    let all: RoaringBitmap = (0..900).collect();
    let open = || Vectors::open(dir.path(), DIMENSIONS as u32).expect("opens").with_trees_from(500);
    let index = open();
    index.add(&messages(0..200)).expect("added");
    assert!(!index.wants_trees(), "400 rows");
    index.add(&messages(200..700)).expect("added");
    assert!(index.wants_trees());
    index.build_trees(|| false).expect("built");
    assert!(!index.wants_trees());
    assert_eq!(index.trees().expect("there").rows(), 1_400);
    let gone = RoaringBitmap::from([7, 650]);
    index.remove(&gone).expect("removed");
    index.add(&messages(700..760)).expect("added");
    assert!(!index.wants_trees(), "a few more are scanned");
    let agree = |index: &Vectors, messages: u32| {
        for n in 0..40 {
            let query = vector(20_000 + n);
            let left = (0..messages).filter(|n| !gone.contains(*n));
            let plain = plainly(&query, left, 10);
            assert_eq!(found(index, &query, &all, 10), plain, "{n}");
            let few: RoaringBitmap = (0..messages).filter(|n| n % 10 == 3).collect();
            let plain = plainly(&query, few.iter(), 10);
            assert_eq!(found(index, &query, &few, 10), plain, "{n} of few");
        }
    };
    agree(&index, 760);
    index.close().expect("closed");
    let index = open();
    assert_eq!(index.trees().expect("opened again").rows(), 1_400);
    agree(&index, 760);
    index.add(&messages(760..900)).expect("added");
    assert!(index.wants_trees());
    assert!(index.build_trees(|| true).is_err(), "stopped");
    agree(&index, 900);
    index.build_trees(|| false).expect("built");
    assert_eq!(index.trees().expect("there").rows(), 1_800);
    agree(&index, 900);
    let trees = std::fs::read_dir(dir.path()).expect("reads").flatten();
    let trees = trees.filter(|e| e.file_name().to_string_lossy().starts_with("trees-")).count();
    assert_eq!(trees, 1, "the old ones go");
}
