//! A warp: 32 lanes in groups that run at different places.
//!
//! A *group* is the lanes of a warp that are at one program counter in one *frame* (an activation of a function). Of a
//! warp's groups that can run, the one in the deepest frame goes first, then the one with the lowest program counter; with
//! the layout that [`crate::code`] gives the blocks, lanes that a branch parted meet again at its post-dominator.
//!
//! That order alone would starve a lane that holds a lock while others of its warp spin on it. A group that branches
//! backward [`PATIENCE`] times while others could run stands back until they have had their turn.

use crate::code::{Code, ROW};
use crate::machine::matrix::Scratch;
use crate::machine::sync::Exchange;

/// Backward branches after which a group lets the others of its warp run.
pub(crate) const PATIENCE: u32 = 1000;

/// Instructions that a look at another thread's memory (a volatile load, an atomic's result) counts for in time slices, so
/// that threads that spin soon make room for the one that they wait for.
pub(crate) const POLL: u64 = 256;

/// A row of registers, or of local memory: 32 words, one a lane.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
pub(crate) struct Row(pub [u32; 32]);

const _: () = assert!(size_of::<Row>() == ROW as usize);

/// What a group waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: it can run.
    Nothing,
    /// A barrier of the block, until its generation is past this.
    Barrier { id: usize, generation: u64 },
    /// The cluster's barrier.
    Cluster { generation: u64 },
    /// Lanes of its warp, for the `*.sync` instruction of this kind.
    Lanes { members: u32, kind: u32 },
    /// Nothing any more: what it waited for has happened; its instruction is still to be finished.
    Finished,
}

/// Lanes at one place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    /// The activation it is in, an index into [`Warp::frames`].
    pub frame: u32,
    /// Next op.
    pub pc: u32,
    /// Its lanes.
    pub mask: u32,
    /// What it waits for.
    pub wait: Wait,
    /// It stands back until the others have had their turn.
    pub yielded: bool,
    /// Backward branches since it last stood back.
    pub back_branches: u32,
}

/// An activation of a function, by the lanes that called it together.
pub(crate) struct Frame {
    /// Rows of registers.
    pub rows: Vec<Row>,
    /// Masks of predicates; mask 0 is all ones, mask 1 all zeros.
    pub predicates: Vec<u32>,
    /// Function, an index into [`Code::functions`].
    pub function: u32,
    /// The caller's frame.
    pub parent: u32,
    /// The caller's op after the call.
    pub return_pc: u32,
    /// The call's argument lists, an index into [`Code::calls`].
    pub call: u32,
    /// Calls between the kernel and this.
    pub depth: u32,
    /// Where its local memory begins, in rows.
    pub local: u32,
    /// Where its local memory ends, in rows: what `alloca` took included.
    pub top: u32,
    /// Lanes that have not returned.
    pub lanes: u32,
}

/// Lanes of a warp at a barrier that others of it have not come to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Divided {
    /// The op.
    pub pc: u32,
    /// The barrier, and how often it had completed.
    pub id: usize,
    pub generation: u64,
    /// The first lane that came, and all that came together.
    pub lane: usize,
    pub came: u32,
    /// Lanes that have something else to do than to exit.
    pub absent: u32,
}

/// A warp of a block.
pub(crate) struct Warp {
    /// Its number in the block.
    pub index: u32,
    /// Groups; their order means nothing.
    pub groups: Vec<Group>,
    /// Frames, those that are free too.
    pub frames: Vec<Frame>,
    /// Frames that no lane is in.
    pub free: Vec<u32>,
    /// Lanes that have not exited.
    pub live: u32,
    /// Local memory: word `w` of lane `l` is `local[w].0[l]`.
    pub local: Vec<Row>,
    /// What `*.sync` instructions hand around.
    pub exchange: Exchange,
    /// Room for what matrix instructions work on, once one was there.
    pub scratch: Option<Box<Scratch>>,
    /// Words of local memory that were written, a bit a lane; empty where that is not wanted.
    pub local_set: Vec<u32>,
    /// Whether that is wanted.
    pub remembers: bool,
    /// The barrier of the block that lanes of it wait at, while others have not come.
    pub divided: Option<Divided>,
    /// `*.sync` instructions that lanes wait at: the op, and the lanes that are missed.
    pub missed: Vec<(u32, u32)>,
    /// Instructions that it ran; its clock.
    pub ran: u64,
    /// Times that it looked at what another thread may have written: see [`POLL`].
    pub polls: u64,
}

impl Warp {
    /// A warp with `lanes` threads, before the first instruction of the kernel.
    pub fn new(index: u32, lanes: u32, code: &Code) -> Self {
        let mut warp = Self {
            index,
            groups: Vec::with_capacity(4),
            frames: Vec::new(),
            free: Vec::new(),
            live: 0,
            local: Vec::new(),
            exchange: Exchange::default(),
            scratch: None,
            local_set: Vec::new(),
            remembers: false,
            divided: None,
            missed: Vec::new(),
            ran: 0,
            polls: 0,
        };
        warp.restart(lanes, code);
        warp
    }

    /// What it has used of time slices.
    #[inline(always)]
    pub fn spent(&self) -> u64 {
        self.ran + self.polls * POLL
    }

    /// Makes a warp new, keeping its buffers.
    pub fn restart(&mut self, lanes: u32, code: &Code) {
        self.groups.clear();
        self.free.clear();
        self.free.extend((0..self.frames.len() as u32).rev());
        self.live = if lanes >= 32 { u32::MAX } else { (1 << lanes) - 1 };
        (self.ran, self.polls) = (0, 0);
        self.local.clear();
        let kernel = &code.functions[0];
        self.local.resize(kernel.local_rows as usize, Row([0; 32]));
        self.local_set.clear();
        self.remember_local();
        self.divided = None;
        self.missed.clear();
        let frame = self.frame(code, 0);
        self.frames[frame as usize].lanes = self.live;
        self.groups.push(Group {
            frame,
            pc: kernel.entry,
            mask: self.live,
            wait: Wait::Nothing,
            yielded: false,
            back_branches: 0,
        });
    }

    /// Makes what is remembered of local memory as long as that is.
    pub fn remember_local(&mut self) {
        if self.remembers {
            self.local_set.resize(self.local.len(), 0);
        }
    }

    /// Lanes of `mask` get these words of local memory anew.
    pub fn forget_local(&mut self, from: u32, to: u32, mask: u32) {
        self.remember_local();
        if let Some(words) = self.local_set.get_mut(from as usize..to as usize) {
            words.iter_mut().for_each(|word| *word &= !mask);
        }
    }

    /// A frame for a function, with no lanes yet.
    pub fn frame(&mut self, code: &Code, function: u32) -> u32 {
        let shape = &code.functions[function as usize];
        let at = self.free.pop().unwrap_or_else(|| {
            self.frames.push(Frame {
                rows: Vec::new(),
                predicates: Vec::new(),
                function,
                parent: 0,
                return_pc: 0,
                call: 0,
                depth: 0,
                local: 0,
                top: 0,
                lanes: 0,
            });
            self.frames.len() as u32 - 1
        });
        let frame = &mut self.frames[at as usize];
        frame.function = function;
        (frame.parent, frame.return_pc, frame.depth, frame.local) = (0, 0, 0, 0);
        frame.top = shape.local_rows;
        if frame.rows.len() < shape.rows as usize {
            frame.rows.resize(shape.rows as usize, Row([0; 32]));
        }
        if frame.predicates.len() < shape.predicates as usize {
            frame.predicates.resize(shape.predicates as usize, 0);
        }
        (frame.predicates[0], frame.predicates[1]) = (u32::MAX, 0);
        if shape.reads_unset {
            // A register that is read before it is written holds zero, the same in every run.
            frame.rows.fill(Row([0; 32]));
            frame.predicates[2..].fill(0);
        }
        at
    }

    /// Joins a group with one that waits for nothing at the same place, or adds it.
    pub fn add(&mut self, group: Group) {
        let same = |g: &&mut Group| {
            g.frame == group.frame
                && g.pc == group.pc
                && g.wait == Wait::Nothing
                && group.wait == Wait::Nothing
        };
        match self.groups.iter_mut().find(same) {
            Some(other) => {
                other.mask |= group.mask;
                other.yielded &= group.yielded;
                other.back_branches = other.back_branches.max(group.back_branches);
            }
            None => self.groups.push(group),
        }
    }

    /// Takes the group that runs next, if one can run.
    pub fn take(&mut self, ready: impl Fn(&Group) -> bool) -> Option<Group> {
        let best = |warp: &Self, yielded: bool| {
            (0..warp.groups.len())
                .filter(|&at| warp.groups[at].yielded <= yielded && ready(&warp.groups[at]))
                .min_by_key(|&at| {
                    let group = &warp.groups[at];
                    (u32::MAX - warp.frames[group.frame as usize].depth, group.pc)
                })
        };
        let at = best(self, false).or_else(|| {
            // All that can run stand back: each has had its turn.
            for group in &mut self.groups {
                group.yielded = false;
            }
            best(self, true)
        })?;
        let mut group = self.groups.swap_remove(at);
        // Others that waited for the same thing at the same place go on with it.
        self.groups.retain(|other| {
            let same = other.frame == group.frame && other.pc == group.pc && other.wait == group.wait;
            if same {
                group.mask |= other.mask;
            }
            !same
        });
        Some(group)
    }

    /// The lowest place after `pc` in `frame` where another group waits for nothing but its turn.
    pub fn next_meeting(&self, frame: u32, pc: u32) -> u32 {
        let later = |g: &&Group| g.frame == frame && g.pc > pc && g.wait == Wait::Nothing;
        self.groups.iter().filter(later).map(|g| g.pc).min().unwrap_or(u32::MAX)
    }
}
