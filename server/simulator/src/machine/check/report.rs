//! Writes down what was caught: who, where, what it concerns.

use super::Access;
use crate::checks::shadow::{Conflict, SEVERAL};
use crate::checks::{Checker, Defect, DefectKind, Other};
use crate::code::NONE;
use crate::machine::Exec;
use crate::machine::access::WINDOW;

impl Exec<'_> {
    /// Lanes of `blank` read what nothing has written.
    #[cold]
    pub(super) fn report_blank(
        &mut self,
        checker: &mut Checker,
        access: &Access<'_>,
        blank: u32,
        object: impl FnOnce(&Self, u64) -> String,
    ) {
        let lane = blank.trailing_zeros() as usize;
        let address = access.a.by_lane[lane];
        let describe = |x: &Self| {
            let object = object(x, address);
            let message =
                format!("{} of {} bytes of {object} that nothing has written", access.what(), access.size);
            Defect {
                object: Some(object),
                ..x.defect(DefectKind::UninitialisedRead, lane, Some(address), message)
            }
        };
        let (pc, block) = (self.group.pc, checker.block);
        checker.found.add(DefectKind::UninitialisedRead, pc, NONE, block, || describe(self));
    }

    #[cold]
    pub(super) fn report_race(
        &mut self,
        checker: &mut Checker,
        access: &Access<'_>,
        lane: usize,
        conflict: &Conflict,
    ) {
        let address = access.a.by_lane[lane];
        let (pc, block) = (self.group.pc, checker.block);
        let kind = DefectKind::SharedRace;
        checker.found.add(kind, pc, conflict.pc, block, || {
            let object = self.shared_object(address & (WINDOW - 1));
            let other_lane = if conflict.lane == SEVERAL { u32::from(lane == 0) } else { conflict.lane };
            let thread = self.grid.thread_index(conflict.warp * 32 + other_lane);
            let what = match (conflict.atomic, conflict.wrote) {
                (true, _) => "atomic operation",
                (false, true) => "write",
                (false, false) => "read",
            };
            let same_warp = conflict.warp == self.warp.index;
            let between =
                if same_warp { "`__syncwarp` between, though both are of one warp" } else { "barrier between" };
            let message = format!(
                "{} of {} bytes of {object} after {} {what} by thread ({}, {}, {}) at {} with no {between}: which comes first is left to chance",
                access.what(),
                access.size,
                if conflict.atomic { "an" } else { "a" },
                thread[0],
                thread[1],
                thread[2],
                self.code.describe_short(conflict.pc),
            );
            let source = self.code.source(conflict.pc);
            let other = Other {
                what,
                thread: Some(thread),
                block: self.block.index,
                place: source.1.cloned(),
                ptx_line: source.0,
            };
            let defect = self.defect(kind, lane, Some(address), message);
            Defect { object: Some(object), other: Some(other), ..defect }
        });
    }

    #[cold]
    pub(super) fn report_block_race(
        &mut self,
        checker: &mut Checker,
        access: &Access<'_>,
        lane: usize,
        wrote: bool,
        other: Option<u64>,
    ) {
        let address = access.a.by_lane[lane];
        let kind = DefectKind::BlockRace;
        let (pc, block) = (self.group.pc, checker.block);
        checker.found.add(kind, pc, NONE, block, || {
            let object = self.global_object(address);
            let what = if wrote { "write" } else { "read" };
            let other = other.map(|number| self.grid.index_of(number));
            let by = other.map_or_else(
                || "other blocks".to_owned(),
                |[x, y, z]| format!("block ({x}, {y}, {z})"),
            );
            let message = format!(
                "{} of {} bytes of {object}, and a {what} there by {by} in the same launch: which comes first is left to chance",
                access.what(),
                access.size
            );
            let other = other.map(|block| Other { what, thread: None, block, place: None, ptx_line: 0 });
            let defect = self.defect(kind, lane, Some(address), message);
            Defect { object: Some(object), other, ..defect }
        });
    }

    /// A defect of a lane at the running op.
    pub(crate) fn defect(
        &self,
        kind: DefectKind,
        lane: usize,
        address: Option<u64>,
        message: String,
    ) -> Defect {
        let source = self.code.source(self.group.pc);
        Defect {
            kind,
            kernel: self.grid.kernel.to_owned(),
            block: self.block.index,
            thread: self.grid.thread_index(self.warp.index * 32 + lane as u32),
            place: source.1.cloned(),
            ptx_line: source.0,
            address,
            message,
            object: None,
            other: None,
            times: 1,
        }
    }

    /// The variable at an offset of shared memory, in words.
    pub(crate) fn shared_object(&self, offset: u64) -> String {
        let dynamic = (self.code.dynamic_shared, self.grid.dynamic_shared);
        match self.code.shared_variable(offset, dynamic) {
            Some((name, size)) => format!("`{name}` ({size} bytes of shared memory)"),
            None => format!("shared memory at {offset:#x}"),
        }
    }

    /// The allocation at a global address, in words.
    pub(crate) fn global_object(&self, address: u64) -> String {
        match self.allocations.track(address) {
            Some(track) => track.describe(),
            None => format!("memory at {address:#x}"),
        }
    }

    /// Writes a defect at the running op down.
    #[cold]
    pub(crate) fn note(&mut self, kind: DefectKind, lane: usize, message: impl FnOnce() -> String) {
        let Some(checker) = self.checker.take() else { return };
        let (pc, block) = (self.group.pc, checker.block);
        checker.found.add(kind, pc, NONE, block, || self.defect(kind, lane, None, message()));
        self.checker = Some(checker);
    }
}
