use super::cache::{Cache, Evicted};
use super::request::Request;

/// 16 lines: one set.
fn small() -> Cache {
    Cache::new(16 * 128)
}

/// Reads a sector; whether it was there.
fn read(cache: &mut Cache, sector: u64) -> bool {
    let request = cache.next_request();
    let hit = cache.load(sector, request);
    cache.fill(sector, request);
    hit
}

#[test]
fn sectors_are_fetched_one_by_one() {
    let mut cache = small();
    assert!(!read(&mut cache, 0));
    assert!(read(&mut cache, 0));
    // The same line, another sector.
    assert!(!read(&mut cache, 1));
    assert!(read(&mut cache, 1));
}

#[test]
fn what_a_request_fetches_was_not_there_for_its_other_sectors() {
    let mut cache = small();
    let request = cache.next_request();
    assert!(!cache.load(0, request));
    assert_eq!(cache.fill(0, request), Some((true, Evicted::default())));
    assert_eq!(cache.fill(1, request), Some((true, Evicted::default())));
    assert!(!cache.load(1, request));
    let next = cache.next_request();
    assert!(cache.load(1, next));
}

#[test]
fn the_line_that_was_not_used_for_longest_goes() {
    let mut cache = small();
    for line in 0..16 {
        read(&mut cache, line * 4);
    }
    assert!(read(&mut cache, 0));
    read(&mut cache, 16 * 4);
    assert!(read(&mut cache, 0), "it was used after line 1");
    assert!(!read(&mut cache, 4), "line 1 went");
}

#[test]
fn what_was_stored_is_written_back_and_parts_are_read_first() {
    let mut cache = small();
    assert_eq!(cache.store(0, u32::MAX, 7), Evicted::default());
    assert_eq!(cache.store(1, 0xff, 7), Evicted::default());
    let mut gone = Vec::new();
    for line in 1..=16 {
        let request = cache.next_request();
        gone.extend(cache.fill(line * 4, request).map(|(_, evicted)| evicted).filter(|one| one.written > 0));
    }
    assert_eq!(gone, [Evicted { written: 2, read: 1, writer: 7 }]);
}

#[test]
fn a_sector_that_is_stored_whole_may_be_read() {
    let mut cache = small();
    cache.store(0, 0xffff, 0);
    assert!(!read(&mut cache, 0), "half of it is unknown");
    let mut cache = small();
    cache.store(0, 0xffff, 0);
    cache.store(0, 0xffff_0000, 0);
    assert!(read(&mut cache, 0));
}

#[test]
fn requests_join_bytes_to_sectors_and_lines() {
    let mut request = Request::default();
    request.add(0, 128);
    assert_eq!((request.sectors().len(), request.lines()), (4, 1));
    assert!(request.sectors().iter().all(|(_, bytes)| *bytes == u32::MAX));
    request.clear();
    request.add(30, 4);
    request.add(28, 2);
    request.add(4096, 8);
    assert_eq!(request.sectors(), [(0, 0xf000_0000), (1, 0b11), (128, 0xff)]);
    assert_eq!(request.lines(), 2);
}
