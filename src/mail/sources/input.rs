//! Bytes of one file, unpacked when gzip: the only place that opens a file.
//!
//! Up to two layers of gzip (some archives serve an already packed file packed once more), any
//! number of members each (RFC 1952 §2.2), zero padding behind the last allowed. Damage ends the
//! stream as if it were its end and is kept as a [`FailureReason`], so that what came before is
//! read like any truncated file. Opens read-only; counts bytes taken from disk for the progress.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::GzDecoder;

use super::failure::FailureReason;

/// First bytes of a gzip member whose method is deflate.
pub(super) const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b, 0x08];

/// Bytes read to learn whether a file is packed; larger reads go past this buffer.
const PEEK_BYTES: usize = 64 << 10;

/// Unpacked bytes taken at once: small, because those of a call that meets damage are lost.
const UNPACK_BYTES_MAX: usize = 8 << 10;

/// Bytes of one file.
pub(super) enum Input {
    Plain(Disk),
    Gzip(Box<Gunzip<Disk>>),
    Twice(Box<Gunzip<BufReader<Gunzip<Disk>>>>),
}

/// A file whose reads are counted.
pub(super) type Disk = BufReader<Counted>;

pub(super) struct Counted {
    file: File,
    done: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buf)?;
        self.done.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl Input {
    /// Opens a file that the caller knows to be a regular one.
    pub(super) fn open(path: &Path, done: Arc<AtomicU64>) -> io::Result<Self> {
        let file = File::open(path)?;
        let mut disk = BufReader::with_capacity(PEEK_BYTES, Counted { file, done });
        if !disk.fill_buf()?.starts_with(GZIP_MAGIC) {
            return Ok(Self::Plain(disk));
        }
        let mut once = BufReader::with_capacity(PEEK_BYTES, Gunzip::new(disk));
        // A look into the first layer; its bytes stay in the reader or are handed on.
        if once.fill_buf()?.starts_with(GZIP_MAGIC) {
            return Ok(Self::Twice(Box::new(Gunzip::new(once))));
        }
        let ahead = once.buffer().to_vec();
        let mut once = once.into_inner();
        once.ahead = io::Cursor::new(ahead);
        Ok(Self::Gzip(Box::new(once)))
    }

    /// What ended the stream early, if anything.
    pub(super) fn damage(&self) -> Option<FailureReason> {
        match self {
            Self::Plain(_) => None,
            Self::Gzip(once) => once.damage.clone(),
            Self::Twice(twice) => {
                let inner = twice.reader().and_then(|r| r.get_ref().damage.clone());
                inner.or_else(|| twice.damage.clone())
            }
        }
    }
}

impl Read for Input {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(disk) => disk.read(buf),
            Self::Gzip(once) => once.read(buf),
            Self::Twice(twice) => twice.read(buf),
        }
    }
}

/// Members of a gzip stream one after the other, damage kept instead of raised.
pub(super) struct Gunzip<R> {
    state: State<Tally<R>>,
    /// Unpacked bytes already taken by a look ahead.
    ahead: io::Cursor<Vec<u8>>,
    damage: Option<FailureReason>,
}

enum State<R> {
    Member(Box<GzDecoder<R>>),
    Between(R),
    Ended(R),
    Moving,
}

impl<R: BufRead> Gunzip<R> {
    fn new(reader: R) -> Self {
        let tally = Tally { reader, taken: 0 };
        Self { state: State::Between(tally), ahead: io::Cursor::new(Vec::new()), damage: None }
    }

    fn reader(&self) -> Option<&R> {
        match &self.state {
            State::Member(member) => Some(&member.get_ref().reader),
            State::Between(tally) | State::Ended(tally) => Some(&tally.reader),
            State::Moving => None,
        }
    }

    /// Between two members: at the next one, or at the end.
    fn step(&mut self, mut tally: Tally<R>, first: bool) -> io::Result<State<Tally<R>>> {
        loop {
            let seen = tally.fill_buf()?;
            let Some(&byte) = seen.first() else {
                return Ok(State::Ended(tally));
            };
            if byte == GZIP_MAGIC[0] {
                return Ok(State::Member(Box::new(GzDecoder::new(tally))));
            }
            let zeros = seen.iter().take_while(|b| **b == 0).count();
            if zeros == 0 || first {
                self.damage = Some(FailureReason::GzipTrailing { packed_offset: tally.taken });
                return Ok(State::Ended(tally));
            }
            tally.consume(zeros);
        }
    }
}

impl<R: BufRead> Read for Gunzip<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let ahead = self.ahead.read(buf)?;
        if ahead > 0 {
            return Ok(ahead);
        }
        loop {
            match std::mem::replace(&mut self.state, State::Moving) {
                State::Ended(tally) => {
                    self.state = State::Ended(tally);
                    return Ok(0);
                }
                State::Moving => return Ok(0),
                State::Between(tally) => {
                    let first = tally.taken == 0;
                    self.state = self.step(tally, first)?;
                }
                State::Member(mut member) => {
                    let room = buf.len().min(UNPACK_BYTES_MAX);
                    match member.read(&mut buf[..room]) {
                        Ok(0) => self.state = State::Between(member.into_inner()),
                        Ok(count) => {
                            self.state = State::Member(member);
                            return Ok(count);
                        }
                        Err(error) => {
                            let tally = member.into_inner();
                            self.damage = Some(FailureReason::GzipDamaged {
                                packed_offset: tally.taken,
                                cause: error.to_string(),
                            });
                            self.state = State::Ended(tally);
                        }
                    }
                }
            }
        }
    }
}

/// A reader that knows how many bytes were taken from it.
struct Tally<R> {
    reader: R,
    taken: u64,
}

impl<R: BufRead> Read for Tally<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buf)?;
        self.taken += count as u64;
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Tally<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.taken += count as u64;
        self.reader.consume(count);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn pack(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> (Vec<u8>, Option<FailureReason>, u64) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, bytes).unwrap();
        let done = Arc::new(AtomicU64::new(0));
        let mut input = Input::open(&path, Arc::clone(&done)).unwrap();
        let mut out = Vec::new();
        input.read_to_end(&mut out).unwrap();
        (out, input.damage(), done.load(Ordering::Relaxed))
    }

    fn noise(count: u32) -> Vec<u8> {
        (0..count).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect()
    }

    #[test]
    fn plain_packed_twice_packed_and_many_members_read_equal() {
        let data = noise(20_000);
        assert_eq!(read(&data), (data.clone(), None, data.len() as u64));
        let packed = pack(&data);
        assert_eq!(read(&packed), (data.clone(), None, packed.len() as u64));
        assert_eq!(read(&pack(&packed)).0, data);
        let mut members = pack(&data[..1_000]);
        members.extend(pack(&[]));
        members.extend(pack(&data[1_000..]));
        members.extend([0; 512]);
        assert_eq!(read(&members), (data, None, members.len() as u64));
    }

    #[test]
    fn damage_keeps_what_came_before() {
        let data = noise(20_000);
        let packed = pack(&data);
        let (cut, damage, _) = read(&packed[..packed.len() / 2]);
        assert!(cut.len() > data.len() / 3 && data.starts_with(&cut));
        assert!(matches!(damage, Some(FailureReason::GzipDamaged { packed_offset, .. })
            if packed_offset as usize == packed.len() / 2));

        let mut trailing = packed;
        let end = trailing.len() as u64;
        trailing.extend(b"garbage");
        assert_eq!(
            read(&trailing),
            (data, Some(FailureReason::GzipTrailing { packed_offset: end }), end + 7)
        );
    }
}
