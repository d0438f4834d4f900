//! The library in front of a driver without a device, and its watcher: what a program does, and what is seen of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use stitch_simulator::perturb::perturb;

use super::*;

const SEED: u64 = 11;

/// A driver, the library in front of it, and a program.
struct Stage {
    folder: tempfile::TempDir,
    front: PathBuf,
}

fn compile(folder: &Path, name: &str, text: &str, arguments: &[&str]) {
    std::fs::write(folder.join("structures.h"), include_str!("front/structures.h")).unwrap();
    std::fs::write(folder.join(name), text).unwrap();
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-O1", "-pthread", "-w", name]).args(arguments).current_dir(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let driver = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", "libcuda.so.999.0"];
        compile(folder.path(), "driver.c", include_str!("tests/driver.c"), &driver);
        compile(folder.path(), "program.c", include_str!("tests/program.c"), &["-ldl", "-o", "program"]);
        let front =
            front(&folder.path().join("cache"), "cc -Werror", &folder.path().join("libcuda.so.999.0"));
        Self { front: front.unwrap(), folder }
    }

    fn watch(&self, what: &str, seed: Option<u64>) -> Watched {
        let service = Service::start(seed).unwrap();
        let mut command = Command::new(self.folder.path().join("program"));
        command.arg(what).current_dir(self.folder.path());
        command.env("LD_LIBRARY_PATH", search_path(&self.front, None)).env(VARIABLE, service.variable());
        let output = command.output().unwrap();
        let watched = service.finish();
        assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
        watched
    }
}

/// The numbers of the program, as bytes.
fn numbers() -> Vec<u8> {
    (0..256u16).flat_map(|index| (f32::from(index + 1) / 7.0).to_le_bytes()).collect()
}

/// What the simulator makes of bytes that a program copies to its device.
fn perturbed(mut bytes: Vec<u8>) -> Vec<u8> {
    assert!(perturb(SEED, &mut bytes));
    bytes
}

/// Rows of `bytes` from `start` on.
fn rows(bytes: &[u8], start: usize, width: usize, height: usize, pitch: usize) -> Vec<u8> {
    (0..height).flat_map(|row| bytes[start + row * pitch..][..width].to_vec()).collect()
}

#[test]
fn copies_are_perturbed_as_on_the_simulator_and_recorded() {
    let watched = Stage::new().watch("plain", Some(SEED));
    let expected = Watched {
        processes: 1,
        perturbed: 1,
        copies: vec![perturbed(numbers()), numbers()],
        unseen: Vec::new(),
    };
    assert!(watched == expected, "{} {} {:?}", watched.perturbed, watched.copies.len(), watched.unseen);
}

#[test]
fn without_a_seed_nothing_is_changed() {
    let watched = Stage::new().watch("threads", None);
    assert_eq!((watched.processes, watched.perturbed, watched.copies.len()), (1, 0, 320));
    assert!(watched.copies.iter().all(|copy| *copy == numbers()));
}

#[test]
fn rectangles_boxes_and_arrays_are_taken_row_by_row() {
    let watched = Stage::new().watch("shapes", Some(SEED));
    let all = numbers();
    let boxed: Vec<u8> = (1..4).flat_map(|slice| rows(&all, slice * 256 + 64, 32, 2, 64)).collect();
    let expected =
        [perturbed(rows(&all, 16 + 128, 64, 4, 128)), perturbed(boxed), perturbed(all[..512].to_vec())];
    assert_eq!(watched.perturbed, 3);
    assert!(watched.copies == expected);
}

#[test]
fn streams_are_waited_for_and_recorded_in_the_order_of_the_calls() {
    let watched = Stage::new().watch("streams", Some(SEED));
    let mut second = numbers();
    second[..4].copy_from_slice(&8f32.to_le_bytes());
    assert_eq!(watched.perturbed, 2);
    assert!(watched.copies == [perturbed(numbers()), perturbed(second)]);
}

#[test]
fn threads_and_forks_are_seen() {
    let stage = Stage::new();
    let watched = stage.watch("threads", Some(SEED));
    assert_eq!((watched.processes, watched.copies.len()), (1, 320));
    let watched = stage.watch("forks", Some(SEED));
    assert_eq!((watched.processes, watched.perturbed), (2, 2));
    let whole = perturbed(numbers());
    assert!(watched.copies == [whole.clone(), whole[..512].to_vec()]);
}

#[test]
fn what_is_not_seen_is_told() {
    let watched = Stage::new().watch("captures", Some(SEED));
    assert_eq!((watched.perturbed, watched.copies.len()), (0, 0));
    let [graphs, batches] = &watched.unseen[..] else { panic!("{:?}", watched.unseen) };
    assert!(graphs.starts_with("2 copies were put into CUDA graphs"), "{graphs}");
    assert!(batches.starts_with("One copy was asked for in batches"), "{batches}");
}

#[test]
fn managed_memory_counts_as_on_the_simulator() {
    let watched = Stage::new().watch("managed", Some(SEED));
    // Perturbed on the way there, and again on the way from there to the device.
    let (once, twice) = (perturbed(numbers()), perturbed(perturbed(numbers())));
    assert_eq!(watched.perturbed, 2);
    assert!(watched.copies == [once[..512].to_vec(), twice]);
}

#[test]
fn a_program_that_closes_what_it_does_not_know_keeps_its_files() {
    let watched = Stage::new().watch("closes", Some(SEED));
    assert_eq!((watched.perturbed, watched.copies.len()), (1, 0));
}

#[test]
fn nobody_is_believed_without_the_token() {
    use std::io::Write;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixStream};
    let service = Service::start(Some(SEED)).unwrap();
    let variable = service.variable();
    let (name, _) = variable.split_once(':').unwrap();
    let mut stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap();
    let mut hello = 1u64.to_le_bytes().to_vec();
    hello.extend([0; 16]);
    stream.write_all(&hello).unwrap();
    drop(stream);
    assert_eq!(service.finish(), Watched::default());
}
