//! The regions that one child has, each for one purpose, made when it is first needed and used until it is too small.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use serde_json::{Value, json};

use super::messages::Held;
use super::region::Region;

/// Larger regions are given back after a round: several verifications of such inputs at once would fill a machine's memory.
pub(super) const LARGE: u64 = 1 << 30;

/// What a region is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    Inputs(bool),
    Grads,
    State,
    Out,
}

impl Slot {
    pub(super) fn of(held: Held) -> Self {
        Self::Inputs(held.0)
    }

    /// How the child calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Inputs(false) => "inputs",
            Self::Inputs(true) => "other inputs",
            Self::Grads => "grads",
            Self::State => "state",
            Self::Out => "out",
        }
    }
}

/// The regions of one child.
#[derive(Debug, Default)]
pub(super) struct Slots {
    regions: BTreeMap<Slot, Region>,
    /// Those that the child was not sent yet.
    new: Vec<Slot>,
}

impl Slots {
    /// The region of a purpose, with room for so many bytes.
    pub(super) fn with_room(&mut self, slot: Slot, size: u64) -> io::Result<&Region> {
        // Nor is a small value kept in a large one, which is given back with it.
        let fits = |region: &Region| region.size() >= size && (region.size() <= LARGE || size > LARGE);
        if !self.regions.get(&slot).is_some_and(fits) {
            // The old one first: both together may be too much.
            self.regions.remove(&slot);
            self.regions.insert(slot, Region::new(size.max(1))?);
            self.new.retain(|new| *new != slot);
            self.new.push(slot);
        }
        self.regions.get(&slot).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The bytes of a new region that this would take; 0 where the present one has room.
    pub(super) fn lacks(&self, slot: Slot, size: u64) -> u64 {
        if self.regions.get(&slot).is_none_or(|region| region.size() < size) { size } else { 0 }
    }

    /// Whether there is a region of a purpose.
    pub(super) fn has(&self, slot: Slot) -> bool {
        self.regions.contains_key(&slot)
    }

    /// What the child is told of new regions. Their descriptors are [`Slots::descriptors`].
    pub(super) fn told(&self) -> Value {
        let one = |slot: &Slot| json!({ "name": slot.name(), "size": self.regions.get(slot).map_or(0, Region::size) });
        self.new.iter().map(one).collect()
    }

    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.new.iter().filter_map(|slot| Some(self.regions.get(slot)?.as_fd())).collect()
    }

    /// The child has them all.
    pub(super) fn sent(&mut self) {
        self.new.clear();
    }

    /// Forgets the large ones, and says how the child calls them.
    pub(super) fn forget_large(&mut self) -> Vec<&'static str> {
        let large: Vec<Slot> =
            self.regions.iter().filter(|(_, region)| region.size() > LARGE).map(|(slot, _)| *slot).collect();
        for slot in &large {
            self.regions.remove(slot);
        }
        self.new.retain(|slot| !large.contains(slot));
        large.into_iter().map(Slot::name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_used_again_until_it_is_too_small() {
        let mut slots = Slots::default();
        slots.with_room(Slot::Out, 100).unwrap();
        assert_eq!((slots.told(), slots.descriptors().len()), (json!([{ "name": "out", "size": 100 }]), 1));
        slots.sent();
        slots.with_room(Slot::Out, 60).unwrap();
        assert_eq!((slots.told(), slots.lacks(Slot::Out, 100)), (json!([]), 0));
        slots.with_room(Slot::Out, 200).unwrap();
        slots.with_room(Slot::Inputs(true), 0).unwrap();
        assert_eq!(slots.descriptors().len(), 2);
        assert_eq!(
            (slots.lacks(Slot::State, 7), slots.has(Slot::State), slots.has(Slot::Out)),
            (7, false, true)
        );
        slots.with_room(Slot::State, LARGE + 1).unwrap();
        slots.with_room(Slot::Grads, LARGE + 1).unwrap();
        slots.with_room(Slot::Grads, 64).unwrap();
        assert_eq!((slots.has(Slot::State), slots.forget_large()), (true, vec!["state"]));
        assert!(!slots.has(Slot::State));
        let told = slots.told();
        let names: Vec<_> = told.as_array().unwrap().iter().map(|one| (&one["name"], &one["size"])).collect();
        let expected =
            [(json!("out"), json!(200)), (json!("other inputs"), json!(1)), (json!("grads"), json!(64))];
        assert_eq!(names, expected.each_ref().map(|(name, size)| (name, size)));
    }
}
