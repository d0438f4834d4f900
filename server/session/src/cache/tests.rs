use std::collections::HashMap;
use std::fs;
use std::process::{Child, Command, Stdio};

use proptest::prelude::*;

use super::*;

const MEGABYTE: u64 = 1 << 20;

fn key(number: usize) -> Key {
    Key::of("test", [number.to_string().as_bytes()])
}

fn entry_path(folder: &Path, key: &Key) -> PathBuf {
    let name = key.to_string();
    folder.join(LAYOUT).join(&name[..2]).join(name)
}

/// What lies in the cache, entries and leftovers alike.
fn bytes_on_disk(folder: &Path) -> u64 {
    let mut sum = 0;
    let mut folders = vec![folder.join(LAYOUT)];
    while let Some(folder) = folders.pop() {
        for child in fs::read_dir(folder).unwrap() {
            let child = child.unwrap();
            // A child process may remove it meanwhile.
            let Ok(metadata) = child.metadata() else { continue };
            if metadata.is_dir() {
                folders.push(child.path());
            } else if child.file_name() != "size" {
                sum += metadata.len();
            }
        }
    }
    sum
}

#[test]
fn keys_tell_apart_whatever_differs() {
    let keys = [
        Key::of("a", []),
        Key::of("b", []),
        Key::of("a", [&b""[..]]),
        Key::of("a", [&b"bc"[..]]),
        Key::of("a", [&b"b"[..], b"c"]),
        Key::of("a", [&b"c"[..], b"b"]),
        Key::of("ab", [&b"c"[..]]),
    ];
    let distinct: std::collections::HashSet<_> = keys.iter().map(ToString::to_string).collect();
    assert_eq!(distinct.len(), keys.len());
    assert_eq!(Key::of("a", [&b"b"[..]]), Key::of("a", [&b"b"[..]]));
}

#[test]
fn what_was_put_is_got_by_every_handle_and_later_wins() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(Some(folder.path()), MEGABYTE);
    assert_eq!(cache.get(&key(1)), None);
    for value in [&b""[..], b"value", &[0; 100_000]] {
        assert!(cache.put(&key(1), value));
        assert_eq!(cache.get(&key(1)).as_deref(), Some(value));
        assert_eq!(Cache::open(Some(folder.path()), 1).get(&key(1)).as_deref(), Some(value));
    }
    assert_eq!(cache.get(&key(2)), None);
    assert_eq!(cache.take_note(), None);
    assert_eq!(fs::read_dir(folder.path().join(LAYOUT).join(ledger::ASIDE)).unwrap().count(), 0);
}

#[test]
fn the_configured_folder_wins_over_the_users() {
    let folder = tempfile::tempdir().unwrap();
    let folders = Folders { cache: Some(folder.path().join("user")), ..Folders::default() };
    let mut settings = config::Cache::default();
    assert!(Cache::configured(&settings, &folders).put(&key(1), b"value"));
    assert!(entry_path(&folder.path().join("user/results"), &key(1)).exists());
    settings.folder = Some(folder.path().join("set"));
    assert!(Cache::configured(&settings, &folders).put(&key(1), b"value"));
    assert!(entry_path(&folder.path().join("set"), &key(1)).exists());
    settings.size_limit_megabytes = 0;
    assert!(!Cache::configured(&settings, &folders).put(&key(1), b"value"));
}

#[test]
fn a_folder_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(Some(&folder.path().join("cache")), MEGABYTE);
    let from = folder.path().join("from");
    fs::create_dir_all(from.join("a/empty")).unwrap();
    fs::write(from.join("a/text.txt"), "text").unwrap();
    fs::write(from.join("nothing"), "").unwrap();
    fs::write(from.join("program"), [7; 70_000]).unwrap();
    make_executable(&from.join("program"));
    assert!(cache.put_folder(&key(1), &from));
    let into = folder.path().join("into");
    assert!(cache.get_folder(&key(1), &into));
    assert_eq!(fs::read_to_string(into.join("a/text.txt")).unwrap(), "text");
    assert_eq!(fs::read(into.join("program")).unwrap(), [7; 70_000]);
    assert!(fs::read(into.join("nothing")).unwrap().is_empty());
    assert!(into.join("a/empty").is_dir());
    assert_eq!(is_executable(&into.join("program")), cfg!(unix));
    assert!(!is_executable(&into.join("nothing")));
    assert!(!cache.get_folder(&key(1), &into), "what is there is left alone");
    assert!(!cache.get_folder(&key(2), &folder.path().join("other")));
    assert!(cache.get(&key(1)).is_some(), "neither was taken for damage");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing else was left");
}

#[cfg(unix)]
fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o111 != 0
}

#[cfg(unix)]
#[test]
fn a_folder_with_a_link_is_not_stored_and_is_no_trouble() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(Some(&folder.path().join("cache")), MEGABYTE);
    let from = folder.path().join("from");
    fs::create_dir(&from).unwrap();
    std::os::unix::fs::symlink("/etc", from.join("link")).unwrap();
    assert!(!cache.put_folder(&key(1), &from));
    assert_eq!(cache.take_note(), None);
    assert!(cache.put(&key(2), b"value"));
}

#[test]
fn a_path_that_leads_out_of_the_folder_is_refused() {
    for name in ["../escaped", "/tmp/escaped", "a/../../escaped", "."] {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(&folder.path().join("cache")), MEGABYTE);
        let mut record = vec![1_u8];
        record.extend((name.len() as u32).to_le_bytes());
        record.extend(name.as_bytes());
        record.extend(4_u64.to_le_bytes());
        record.extend(b"evil");
        assert!(cache.put(&key(1), &record));
        assert!(!cache.get_folder(&key(1), &folder.path().join("into")), "{name}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{name}: only the cache is there");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn a_damaged_entry_is_missed_and_removed(
        value in proptest::collection::vec(any::<u8>(), 0..100),
        cut in any::<prop::sample::Index>(),
        flip in any::<prop::sample::Index>(),
        kind in 0..4,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(folder.path()), MEGABYTE);
        prop_assert!(cache.put(&key(1), &value));
        let path = entry_path(folder.path(), &key(1));
        let mut bytes = fs::read(&path).unwrap();
        match kind {
            0 => bytes.truncate(cut.index(bytes.len())),
            1 => { let at = flip.index(bytes.len()); bytes[at] ^= 1; }
            2 => bytes.push(0),
            _ => bytes.fill(0xff),
        }
        fs::write(&path, &bytes).unwrap();
        prop_assert_eq!(cache.get(&key(1)), None);
        prop_assert!(!path.exists());
        prop_assert!(cache.put(&key(1), &value));
        prop_assert_eq!(cache.get(&key(1)), Some(value));
    }
}

#[test]
fn the_least_recently_used_goes_first_and_never_what_was_just_put() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(Some(folder.path()), 10_000);
    let value = |number: usize| vec![number as u8; 900];
    for number in 0..200 {
        assert!(cache.put(&key(number), &value(number)));
        assert_eq!(cache.get(&key(number)), Some(value(number)), "just put");
        assert_eq!(cache.get(&key(0)), Some(value(0)), "used all the time");
        assert!(bytes_on_disk(folder.path()) <= 10_000);
    }
    let left = (0..200).filter(|number| cache.get(&key(*number)).is_some()).collect::<Vec<_>>();
    assert!((8..=10).contains(&left.len()), "{left:?}");
    assert_eq!(left[1..], (201 - left.len()..200).collect::<Vec<_>>()[..], "the youngest are left");
    let large = vec![1; 9_900];
    assert!(cache.put(&key(500), &large));
    assert_eq!(cache.get(&key(500)), Some(large));
    assert!(!cache.put(&key(501), &[0; 10_000]), "larger than the cache");
    assert!(cache.get(&key(500)).is_some(), "and nothing was removed for it");
    assert_eq!(cache.take_note(), None);
}

#[test]
fn the_entries_are_counted_only_when_the_sum_passes_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(Some(folder.path()), MEGABYTE);
    let size = folder.path().join(LAYOUT).join("size");
    let sum = || u64::from_le_bytes(fs::read(&size).unwrap()[..8].try_into().unwrap());
    assert!(cache.put(&key(1), &[1; 1000]));
    assert_eq!(sum(), 1032);
    // An entry that nobody announced is not noticed by a put below the limit, so it did not count.
    fs::write(entry_path(folder.path(), &key(1)).with_file_name("foreign"), [0; 5000]).unwrap();
    assert!(cache.put(&key(2), &[2; 1000]));
    assert_eq!(sum(), 2064);
    for damage in [&b""[..], b"garbage, longer than sixteen bytes", &[0; 16]] {
        fs::write(&size, damage).unwrap();
        assert!(cache.put(&key(3), &[3; 1000]));
        assert!(sum() >= 5000 + 3 * 1032, "a damaged sum is counted anew");
    }
}

#[test]
fn what_a_killed_put_left_is_removed_after_an_hour() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(Some(folder.path()), 10_000);
    assert!(cache.put(&key(0), b"value"));
    let aside = folder.path().join(LAYOUT).join(ledger::ASIDE);
    for (name, age) in [("old", 2 * 3600), ("young", 60)] {
        let file = fs::File::create(aside.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }
    for number in 0..20 {
        assert!(cache.put(&key(number), &[0; 900]));
    }
    assert!(!aside.join("old").exists());
    assert!(aside.join("young").exists());
}

#[test]
fn a_cache_that_is_deleted_while_it_is_used_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(Some(folder.path()), MEGABYTE);
    for number in 0..5 {
        assert!(cache.put(&key(number), b"value"));
        assert!(cache.get(&key(number)).is_some());
        fs::remove_dir_all(folder.path().join(LAYOUT)).unwrap();
        assert_eq!(cache.get(&key(number)), None);
    }
    assert_eq!(cache.take_note(), None);
}

#[test]
fn without_a_folder_that_can_be_written_all_is_a_miss_and_one_note_says_so() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "in the way").unwrap();
    let (blocked, nowhere) = (folder.path().join("file"), Path::new("/proc/stitchcuda-can-not-be-made"));
    for (path, note) in
        [(None, "STITCHCUDA_CACHE_DIR"), (Some(&*blocked), "cache.folder"), (Some(nowhere), "cache.folder")]
    {
        let cache = Cache::open(path, MEGABYTE);
        for number in 0..10 {
            assert!(!cache.put(&key(number), b"value"));
            assert_eq!(cache.get(&key(number)), None);
            assert!(!cache.get_folder(&key(number), &folder.path().join("into")));
        }
        assert!(cache.take_note().unwrap().contains(note), "{path:?}");
        assert_eq!(cache.take_note(), None);
    }
    let off = Cache::off();
    assert!(!off.put(&key(1), b"value"));
    assert_eq!((off.get(&key(1)), off.take_note()), (None, None));
}

/// A folder on a disk of its own of this many bytes. `None` where none can be mounted.
#[cfg(target_os = "linux")]
fn small_disk(bytes: usize) -> Option<SmallDisk> {
    let folder = tempfile::tempdir().unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"]).arg(folder.path());
    let mounted = mount.stderr(std::process::Stdio::null()).status().is_ok_and(|status| status.success());
    mounted.then_some(SmallDisk(folder))
}

#[cfg(target_os = "linux")]
struct SmallDisk(tempfile::TempDir);

#[cfg(target_os = "linux")]
impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg(self.0.path()).status().unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
#[expect(clippy::print_stderr, reason = "who runs the tests should know what was left out")]
fn on_a_full_disk_all_is_a_miss_nothing_is_left_and_one_note_says_so() {
    let Some(disk) = small_disk(1 << 20) else {
        eprintln!("skipped: mounting a small disk takes root");
        return;
    };
    let folder = disk.0.path();
    let cache = Cache::open(Some(folder), 100 * MEGABYTE);
    assert!(cache.put(&key(0), b"fits"));
    let used = bytes_on_disk(folder);
    for number in 1..4 {
        assert!(!cache.put(&key(number), &vec![7; 2 << 20]));
        assert_eq!(cache.get(&key(number)), None);
    }
    assert_eq!(cache.get(&key(0)).unwrap(), b"fits");
    assert_eq!(bytes_on_disk(folder), used, "half an entry was left");
    let note = cache.take_note().unwrap();
    assert!(note.contains("Free some space") && note.contains(&folder.display().to_string()), "{note}");
    assert_eq!(cache.take_note(), None);
    // Another process, or this one after a pause, goes on once there is room.
    let again = Cache::open(Some(folder), 100 * MEGABYTE);
    assert!(again.put(&key(9), b"fits too"));
    assert_eq!((again.get(&key(9)).unwrap(), again.take_note()), (b"fits too".to_vec(), None));
}

/// A value that can be told from every other by its key alone.
fn value_for(number: usize) -> Vec<u8> {
    (0..500 + number * 37 % 3000).map(|index| (number * 31 + index) as u8).collect()
}

/// Puts and gets for a while, and checks that nothing wrong is ever read.
fn stress(cache: &Cache, seed: usize, rounds: usize) {
    let mut number = seed;
    for _ in 0..rounds {
        number = (number * 1_103_515_245 + 12_345) % 2_147_483_648;
        let which = number / 65_536 % 50;
        match cache.get(&key(which)) {
            Some(value) => assert_eq!(value, value_for(which)),
            None => assert!(cache.put(&key(which), &value_for(which))),
        }
    }
}

#[test]
fn many_threads_share_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 40_000;
    std::thread::scope(|scope| {
        for seed in 0..8 {
            let cache = Cache::open(Some(folder.path()), limit);
            scope.spawn(move || {
                stress(&cache, seed, 300);
                assert_eq!(cache.take_note(), None);
            });
        }
    });
    // Puts that were under way while the entries were counted may come on top.
    assert!(bytes_on_disk(folder.path()) <= 2 * limit, "{}", bytes_on_disk(folder.path()));
}

const CHILD_FOLDER: &str = "STITCH_TEST_CACHE_FOLDER";

/// Not a test by itself: what the child processes of the next test run.
#[test]
fn child_that_uses_a_cache() {
    let Some(folder) = std::env::var_os(CHILD_FOLDER) else { return };
    let cache = Cache::open(Some(Path::new(&folder)), 40_000);
    stress(&cache, std::process::id() as usize, usize::MAX);
}

fn start_child(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cache::tests::child_that_uses_a_cache"])
        .env(CHILD_FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn processes_share_a_cache_and_may_be_killed_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(Some(folder.path()), 40_000);
    let mut children: Vec<_> = (0..3).map(|_| start_child(folder.path())).collect();
    for round in 0..40 {
        stress(&cache, round, 20);
        std::thread::sleep(Duration::from_millis(10 + round as u64 % 7));
        let child = &mut children[round % 3];
        assert_eq!(child.try_wait().unwrap(), None, "a child ended by itself: it read something wrong");
        child.kill().unwrap();
        child.wait().unwrap();
        *child = start_child(folder.path());
    }
    for mut child in children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // No lock is left, every entry is whole, and the size is bounded.
    let started = Instant::now();
    let whole: HashMap<_, _> =
        (0..50).filter_map(|number| Some((number, cache.get(&key(number))?))).collect();
    assert!(!whole.is_empty());
    assert!(whole.iter().all(|(number, value)| *value == value_for(*number)));
    for number in 100..200 {
        assert!(cache.put(&key(number), &[0; 900]));
    }
    assert!(started.elapsed() < Duration::from_secs(30));
    let aside = fs::read_dir(folder.path().join(LAYOUT).join(ledger::ASIDE)).unwrap();
    let leftovers: u64 = aside.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes_on_disk(folder.path()) - leftovers <= 40_000);
    assert_eq!(cache.take_note(), None);
}
