//! How a kernel is launched: its occupancy is one number for each block size and dynamic shared memory that launches give it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use stitch_analysis::Launch;

use super::matching::Seen;
use crate::locate::Lines;
use crate::occupancy::Occupancy;

/// One way in which a kernel is launched, or is assumed to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// Threads a block.
    pub block: u32,
    /// Dynamic shared memory a block, in bytes; `None` where it is not known before it runs.
    pub dynamic_shared: Option<u64>,
    /// Where the block size comes from: `launch at line 12`, `launch bounds`, `assumed`.
    pub from: String,
    /// What fits on a multiprocessor then.
    pub occupancy: Option<Occupancy>,
}

/// The ways in which a kernel is launched.
pub(super) struct Configurations {
    /// Each once, in the order of the launches.
    pub known: Vec<Configuration>,
    /// Launches whose block size is not known.
    pub unknown: usize,
}

/// Ways that are told in words; a kernel with more is launched by tables.
const MOST_IN_WORDS: usize = 6;

impl Configurations {
    /// Those of these launches, in files with these texts.
    pub(super) fn of(launches: &[&Seen], text: &dyn Fn(usize) -> Arc<str>) -> Self {
        let mut found = Self { known: Vec::new(), unknown: 0 };
        let mut in_order = launches.to_vec();
        in_order.sort_by_key(|seen| (seen.file, seen.launch.span.start));
        for Seen { file, launch, .. } in in_order {
            let Some(block) = launch.block.as_ref().and_then(|block| block.value).and_then(threads) else {
                found.unknown += 1;
                continue;
            };
            let dynamic_shared = dynamic_shared(launch);
            let is_same = |one: &Configuration| (one.block, one.dynamic_shared) == (block, dynamic_shared);
            if !found.known.iter().any(is_same) {
                let (line, _) = Lines::new(&text(*file)).line_of(launch.span.start);
                let from = format!("launch at line {}", line + 1);
                found.known.push(Configuration { block, dynamic_shared, from, occupancy: None });
            }
        }
        found
    }
}

/// The dynamic shared memory that a launch gives: none where it says nothing; `None` where what it says is not known.
pub(super) fn dynamic_shared(launch: &Launch) -> Option<u64> {
    match &launch.shared {
        Some(expression) => expression.value.and_then(|value| u64::try_from(value[0]).ok()),
        None => Some(0),
    }
}

/// The product of a block's dimensions, if such a block can be launched.
pub(super) fn threads(dimensions: [i64; 3]) -> Option<u32> {
    let product = dimensions.iter().try_fold(1i64, |product, dimension| product.checked_mul(*dimension))?;
    u32::try_from(product).ok().filter(|threads| (1..=1024).contains(threads))
}

impl Configuration {
    /// What it is, and where it comes from: `block of 256 (launch at line 12); 64 bytes of dynamic shared memory`.
    pub fn words(&self) -> String {
        let dynamic = match self.dynamic_shared {
            Some(0) => String::new(),
            Some(bytes) => format!("; {bytes} bytes of dynamic shared memory"),
            None => "; without its dynamic shared memory, which is not known".to_owned(),
        };
        format!("block of {} ({}){dynamic}", self.block, self.from)
    }
}

/// All in words: what limits the one with this block and dynamic shared memory, then the others with their occupancies.
pub(super) fn words(all: &[Configuration], block: u32, dynamic_shared: Option<u64>) -> String {
    let is_shown = |one: &&Configuration| (one.block, one.dynamic_shared) == (block, dynamic_shared);
    let reason = |one: &Configuration| {
        let occupancy = one.occupancy.as_ref();
        format!("{}; {}", occupancy.map_or_else(String::new, Occupancy::reason), one.words())
    };
    let mut text = all.iter().find(is_shown).map(reason).unwrap_or_default();
    let others: Vec<&Configuration> = all.iter().filter(|one| !is_shown(one)).collect();
    for one in others.iter().take(MOST_IN_WORDS) {
        let ratio = one.occupancy.as_ref().map_or(0.0, Occupancy::ratio);
        text.push_str(&format!(" / {:.0}% with a {}", ratio * 100.0, one.words()));
    }
    if others.len() > MOST_IN_WORDS {
        text.push_str(&format!(" / and {} more", others.len() - MOST_IN_WORDS));
    }
    text
}
