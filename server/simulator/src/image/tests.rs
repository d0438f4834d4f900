//! The fixtures are `tests/images/shapes.cu`, built by nvcc 13 with each `-compress-mode` (see `tests/images/README.md`).

use proptest::prelude::*;

use super::*;

const NONE: &[u8] = include_bytes!("../../tests/images/none.fatbin");
const SPEED: &[u8] = include_bytes!("../../tests/images/speed.fatbin");
const BALANCE: &[u8] = include_bytes!("../../tests/images/balance.fatbin");
const SIZE: &[u8] = include_bytes!("../../tests/images/size.fatbin");
const MACHINE_CODE: &[u8] = include_bytes!("../../tests/images/machine-code.fatbin");
const SEPARATE: &[u8] = include_bytes!("../../tests/images/separate.o");

fn chosen(image: &[u8], device: u32) -> Result<Ptx, ImageError> {
    choose(&read(image)?, device)
}

#[test]
fn each_compression_gives_the_same_text() {
    let plain = chosen(NONE, 90).unwrap();
    assert_eq!(plain.arch, 90);
    assert!(plain.text.contains(".target sm_90") && plain.text.contains(".entry scale"), "{}", plain.text);
    assert!(plain.text.trim_end().ends_with('}'));
    for (image, expected) in
        [(SPEED, Compression::Lz4), (BALANCE, Compression::Zstd), (SIZE, Compression::Zstd)]
    {
        let entries = read(image).unwrap();
        assert!(entries.iter().any(|entry| entry.kind == EntryKind::Ptx && entry.compression == expected));
        assert_eq!(chosen(image, 90).unwrap(), plain);
    }
}

#[test]
fn the_newest_text_not_above_the_device_is_taken() {
    assert_eq!(chosen(NONE, 120).unwrap().arch, 90);
    assert_eq!(chosen(NONE, 89).unwrap().arch, 80);
    let error = chosen(NONE, 75).unwrap_err();
    assert_eq!(error, ImageError::TooNew { present: vec![80, 90], device: 75 });
    expect_test::expect!["the image has PTX for compute_80 and compute_90, which is newer than the simulated sm_75: rebuild with `-gencode arch=compute_75,code=compute_75`, or simulate a newer device"]
        .assert_eq(&error.to_string());
}

#[test]
fn an_image_without_text_is_named() {
    let error = chosen(MACHINE_CODE, 90).unwrap_err();
    expect_test::expect!["the image has only machine code for sm_86; the simulator runs PTX: rebuild with `-gencode arch=compute_90,code=compute_90`"]
        .assert_eq(&error.to_string());
    assert_eq!(choose(&[], 90), Err(ImageError::Empty));
}

#[test]
fn separate_compilation_is_found_in_the_object_file() {
    let sections = sections(SEPARATE).unwrap();
    assert_eq!((sections.complete.len(), sections.relocatable.len()), (0, 1));
    assert!(chosen(sections.relocatable[0], 90).unwrap().text.contains(".entry scale"));
    assert!(matches!(super::sections(NONE), Err(ImageError::Elf { .. })));
}

#[test]
fn machine_code_is_the_same_where_only_names_and_bounds_differ() {
    let [plain, bounded, other] = [
        &include_bytes!("../../tests/images/plain.o")[..],
        include_bytes!("../../tests/images/bounded.o"),
        include_bytes!("../../tests/images/other.o"),
    ]
    .map(|file| machine_code(file).unwrap().unwrap());
    assert_eq!(plain, bounded);
    assert_ne!(plain, other);
    // PTX alone is no machine code, and a fat binary no program.
    assert_eq!(machine_code(SEPARATE), Ok(None));
    assert!(matches!(machine_code(NONE), Err(ImageError::Elf { .. })));
}

#[test]
fn a_cut_off_image_says_what_is_missing() {
    for end in 0..SPEED.len() {
        let error = read(&SPEED[..end]).unwrap_err();
        assert!(matches!(error, ImageError::Truncated { .. }), "{end}: {error}");
    }
    let left = SPEED.len() - 1;
    assert_eq!(
        read(&SPEED[..left]).unwrap_err(),
        ImageError::Truncated { what: "the fat binary", offset: 0, needed: SPEED.len() as u64, left }
    );
    assert_eq!(read(b"\x7fELF____________").unwrap_err(), ImageError::NotFat { found: 0x464C_457F });
}

#[test]
fn a_claim_of_more_than_can_be_is_not_believed() {
    for image in [SPEED, SIZE] {
        let entries = read(image).unwrap();
        for entry in entries.iter().filter(|entry| entry.kind == EntryKind::Ptx) {
            for length in [0, entry.length - 1, entry.length + 1, u64::MAX] {
                let error = Entry { length, ..entry.clone() }.text().unwrap_err();
                assert!(matches!(error, ImageError::Compression { .. }), "{length}: {error}");
            }
        }
    }
}

proptest! {
    /// Whatever a file holds: an answer, never a panic.
    #[test]
    fn a_garbled_image_is_answered(
        which in 0..6usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        heads in proptest::collection::vec((0..96usize, any::<u8>()), 0..4),
        keep in any::<prop::sample::Index>(),
    ) {
        let mut image = [NONE, SPEED, BALANCE, SIZE, MACHINE_CODE, SEPARATE][which].to_vec();
        for (place, byte) in changes {
            let place = place.index(image.len());
            image[place] = byte;
        }
        for (place, byte) in heads {
            image[place] = byte;
        }
        image.truncate(keep.index(image.len() * 8));
        let _ = sections(&image);
        for entry in read(&image).unwrap_or_default() {
            let _ = entry.text();
        }
    }
}

/// Found by fuzzing: a fat binary of no bytes.
#[test]
fn an_image_that_is_shorter_than_its_head_is_cut_off() {
    let mut bytes = [0; HEADER_LENGTH];
    bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
    assert!(matches!(read(&bytes), Err(ImageError::Truncated { .. })));
}
