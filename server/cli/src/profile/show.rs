//! A profile for a person.

use std::io::{self, Write};

use stitch_profiles::profile::Profile;

/// Prints a profile.
///
/// # Errors
/// Writing to `out`.
pub(super) fn print(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}, {}", profile.target, profile.way.by)?;
    if let Some(device) = &profile.device {
        writeln!(out, "{device}")?;
    }
    for launch in &profile.launches {
        writeln!(out, "{}", launch.kernel.signature)?;
    }
    for note in &profile.notes {
        writeln!(out, "note: {}", note.text)?;
    }
    Ok(())
}
