//! Defects in words.

use super::model::{Defect, DefectKind, Side};
use crate::kernel::Format;

impl Defect {
    /// What was found, in a sentence or two.
    pub fn message(&self) -> String {
        let kernel = self.kernel().map(|kernel| format!(" in `{}`", kernel.base)).unwrap_or_default();
        let space = self.space.as_deref().map(|space| format!("{space} ")).unwrap_or_default();
        let size =
            self.size.map(|size| format!(" of {} byte{}", count(size), plural(size))).unwrap_or_default();
        let access = if self.text.contains("write") {
            "write"
        } else if self.text.contains("atomic") {
            "atomic"
        } else {
            "read"
        };
        let who = self.who();
        match self.kind {
            DefectKind::OutOfBounds => {
                format!("Out-of-bounds {space}{access}{size}{kernel}{who}{}.{}", self.beside(), self.more())
            }
            DefectKind::Misaligned => {
                format!("Misaligned {space}{access}{size}{kernel}{who}.{}", self.more())
            }
            DefectKind::UninitializedRead => {
                format!("Read of uninitialised {space}memory{size}{kernel}{who}.{}", self.more())
            }
            DefectKind::Race => self.race(&kernel),
            DefectKind::Barrier => {
                format!("{}{kernel}{who}.{}", self.text.trim_end_matches('.'), self.more())
            }
            DefectKind::Leak => format!(
                "{} byte{} of device memory are never freed.{}",
                count(self.size.unwrap_or(0)),
                plural(2),
                self.more()
            ),
            DefectKind::ApiError => match (&self.api, self.error) {
                (Some(api), Some(error)) => {
                    format!("The API call {api} returned error {error}: {}{}", self.text, self.more())
                }
                _ => format!("{}{}", self.text, self.more()),
            },
            DefectKind::InvalidFree
            | DefectKind::Exception
            | DefectKind::UnusedMemory
            | DefectKind::Other => {
                format!("{}{kernel}{who}.{}", self.text.trim_end_matches('.'), self.more())
            }
        }
    }

    /// What to do, in a sentence.
    pub fn advice(&self) -> String {
        let what = match self.kind {
            DefectKind::OutOfBounds => "Check the index against the size before the access.",
            DefectKind::Misaligned => {
                "Access the address with a type whose size divides it, or align the base and the offset."
            }
            DefectKind::InvalidFree => "Free each pointer once, and only what was allocated.",
            DefectKind::Leak => "Free it, or hold it in an object that does.",
            DefectKind::ApiError => {
                "Look at the result of the call; where a kernel failed before it, that is the cause."
            }
            DefectKind::Exception => "Look at recursion, function pointers and the stack's size.",
            DefectKind::Race => {
                "Put a barrier between the accesses: __syncthreads(), or __syncwarp() within a warp."
            }
            DefectKind::UninitializedRead => "Write the memory before it is read; cudaMemset counts bytes.",
            DefectKind::UnusedMemory => "Allocate what is used, and check the size of the copy.",
            DefectKind::Barrier => "Let all threads of the block, or of the mask, reach the barrier.",
            DefectKind::Other => "Read the tool's report; its stack names the launch.",
        };
        let on_device =
            !matches!(self.kind, DefectKind::Leak | DefectKind::ApiError | DefectKind::UnusedMemory);
        if on_device && self.place().is_none() {
            format!("{what} Build with -lineinfo to be told the line.")
        } else {
            what.to_owned()
        }
    }

    fn who(&self) -> String {
        let Some(threads) = self.threads else { return String::new() };
        let block = self.blocks.map(|blocks| format!(" of block {}", blocks.label())).unwrap_or_default();
        format!(" by thread {}{block}", threads.label())
    }

    fn beside(&self) -> String {
        let Some(allocation) = self.allocation else { return String::new() };
        let of = allocation.size.map(|size| format!(" of {} bytes", count(size))).unwrap_or_default();
        let distance = count(allocation.distance);
        match allocation.side {
            Side::After => {
                format!(", {distance} byte{} behind an allocation{of}", plural(allocation.distance))
            }
            Side::Before => {
                format!(", {distance} byte{} before an allocation{of}", plural(allocation.distance))
            }
            Side::Inside => format!(", inside an allocation{of}"),
        }
    }

    fn race(&self, kernel: &str) -> String {
        let access = self.access.as_deref().unwrap_or("access").to_lowercase();
        let others = self.others.iter().map(|(what, at)| {
            let line = at.place.as_ref().map(|place| format!(" at line {}", place.line)).unwrap_or_default();
            format!("{}{line}", what.to_lowercase())
        });
        let others: Vec<String> = others.collect();
        let with = if others.is_empty() {
            String::new()
        } else {
            format!(" races with the {}", others.join(" and the "))
        };
        let hazards =
            self.hazards.map(|hazards| format!(" ({} hazards)", count(hazards))).unwrap_or_default();
        format!("The {access} of shared memory here{kernel}{with}{hazards}.{}", self.more())
    }

    fn more(&self) -> String {
        if self.count > 1 { format!(" {} reports say the same.", count(self.count)) } else { String::new() }
    }
}

fn count(value: u64) -> String {
    Format::Count.show(value as f64)
}

fn plural(value: u64) -> &'static str {
    if value == 1 { "" } else { "s" }
}
