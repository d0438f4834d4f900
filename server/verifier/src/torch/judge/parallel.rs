//! Work over the bytes of a tensor, a part for each core.

/// Fewer bytes are worked on by one core: starting threads would take longer.
pub(super) const ALONE: usize = 1 << 20;

/// Whether bytes are the same.
pub(super) fn equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && chunks(one.len(), 1, |range| one[range.clone()] == other[range]).into_iter().all(|same| same)
}

/// Changes bytes in a part for each core at once; each is told the number of its first unit.
pub(super) fn chunks_mut(bytes: &mut [u8], unit: usize, work: impl Fn(usize, &mut [u8]) + Sync) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if bytes.len() < ALONE || cores == 1 {
        return work(0, bytes);
    }
    let step = (bytes.len() / unit).div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        for (place, part) in bytes.chunks_mut(step * unit).enumerate() {
            let work = &work;
            scope.spawn(move || work(place * step, part));
        }
    });
}

/// Cuts `length` bytes between units into a part for each core, and works on all at once; the results in their order.
pub(super) fn chunks<T: Send>(
    length: usize,
    unit: usize,
    work: impl Fn(std::ops::Range<usize>) -> T + Sync,
) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if length < ALONE || cores == 1 {
        return vec![work(0..length)];
    }
    let step = (length / unit).div_ceil(cores) * unit;
    std::thread::scope(|scope| {
        let work = &work;
        let starts = (0..length).step_by(step.max(unit));
        let threads: Vec<_> =
            starts.map(|start| scope.spawn(move || work(start..(start + step).min(length)))).collect();
        // A thread that panicked has said so; what it would have found is not made up.
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}
