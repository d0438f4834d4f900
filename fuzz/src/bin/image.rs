//! The readers of fat binaries and of the sections of programs that hold them: everything that they find is decompressed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stitch_simulator::image;

fuzz_target!(|bytes: &[u8]| {
    look_into(bytes);
    if let Ok(sections) = image::sections(bytes) {
        let _ = format!("{sections:?}");
    }
});

fn look_into(bytes: &[u8]) {
    let _ = image::length(bytes);
    let Ok(entries) = image::read(bytes) else { return };
    for entry in &entries {
        let _ = entry.text();
    }
    let _ = image::choose(&entries, 90);
}
