//! Which warps of a block know of what others did: vector clocks.
//!
//! Warp `u` counts its own steps in `of[u][u]`; `of[u][w]` is the last step of warp `w` that `u` knows to be over. Who arrives at
//! a barrier hands over what it knows, and who leaves it takes that along. An access of `w` at step `c` comes before what `u` does now where
//! `of[u][w] >= c`. Source: Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System", 1978; Flanagan and Freund,
//! "FastTrack: Efficient and Precise Dynamic Race Detection", 2009.
//!
//! A warp's own step is raised to the highest that it knows of when it leaves a barrier, so that the steps of a block keep pace. Then one comparison
//! tells most accesses that were before the last barrier of the block: their step is not above the *floor*, the lowest that a warp knows of the others.
//!
//! Atomic operations and volatile accesses hand over through one clock a block, whatever their address. That makes more look ordered than
//! is, so what uses flags and locks is never accused wrongly.

use crate::machine::barrier::ALL_BARRIERS;

/// Warps of a block, at most.
pub(crate) const WARPS: usize = 32;

/// What is known of each warp.
pub(crate) type Clock = [u32; WARPS];

fn join(to: &mut Clock, from: &Clock) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = (*to).max(*from);
    }
}

/// What arrivals at a named barrier handed over.
#[derive(Clone, Copy, Default)]
struct Meeting {
    generation: u64,
    /// Of the generation that is being gathered.
    pending: Clock,
    /// Of those before it.
    last: Clock,
}

impl Meeting {
    fn catch_up(&mut self, generation: u64) {
        if generation > self.generation {
            let pending = std::mem::take(&mut self.pending);
            join(&mut self.last, &pending);
            self.generation = generation;
        }
    }
}

/// The clocks of a block.
pub(crate) struct Clocks {
    of: Vec<Clock>,
    /// What comes before everything that a warp does: accesses of no higher step, whoever did them.
    floors: Vec<u32>,
    barriers: [Meeting; ALL_BARRIERS],
    /// Handed over by atomic operations and volatile accesses.
    released: Clock,
    /// By `mbarrier` objects, by their offset in shared memory.
    objects: Vec<(u64, Clock)>,
}

impl Clocks {
    pub fn new(warps: usize) -> Self {
        let mut clocks = Self {
            of: vec![[0; WARPS]; warps.min(WARPS)],
            floors: vec![0; warps.min(WARPS)],
            barriers: [Meeting::default(); ALL_BARRIERS],
            released: [0; WARPS],
            objects: Vec::new(),
        };
        clocks.restart(0);
        clocks
    }

    /// Begins another block: what was before is over for everyone. Returns the step that everything before has.
    pub fn restart(&mut self, before: u32) {
        for (own, clock) in self.of.iter_mut().enumerate() {
            *clock = [before; WARPS];
            clock[own] = before + 1;
        }
        self.floors.fill(before);
        self.barriers = [Meeting::default(); ALL_BARRIERS];
        self.released = [0; WARPS];
        self.objects.clear();
    }

    /// The last step of any warp.
    pub fn latest(&self) -> u32 {
        self.of.iter().enumerate().map(|(own, clock)| clock[own]).max().unwrap_or(0)
    }

    /// What warp `own` knows.
    #[inline(always)]
    pub fn of(&self, own: u32) -> &Clock {
        &self.of[own as usize % WARPS]
    }

    /// Accesses of no higher step come before what warp `own` does now.
    #[inline(always)]
    pub fn floor(&self, own: u32) -> u32 {
        self.floors[own as usize % WARPS]
    }

    /// A warp has learnt of others.
    fn learnt(&mut self, own: u32) {
        let warps = self.of.len();
        let clock = &mut self.of[own as usize];
        let known = &mut clock[..warps];
        known[own as usize] = known.iter().copied().max().unwrap_or(0);
        let others = known.iter().enumerate().filter(|(at, _)| *at != own as usize).map(|(_, step)| *step);
        let lowest = others.min().unwrap_or(u32::MAX);
        self.floors[own as usize] = lowest.min(known[own as usize] - 1);
    }

    /// Lanes of a warp have met.
    #[inline(always)]
    pub fn step(&mut self, own: u32) {
        self.of[own as usize][own as usize] += 1;
    }

    /// A warp arrives at barrier `id`, which has completed `generation` times.
    pub fn arrive(&mut self, own: u32, id: usize, generation: u64) {
        let meeting = &mut self.barriers[id];
        meeting.catch_up(generation);
        join(&mut meeting.pending, &self.of[own as usize]);
        self.step(own);
    }

    /// A warp goes on after barrier `id`, which has completed `generation` times.
    pub fn leave(&mut self, own: u32, id: usize, generation: u64) {
        let meeting = &mut self.barriers[id];
        meeting.catch_up(generation);
        join(&mut self.of[own as usize], &meeting.last);
        self.learnt(own);
    }

    /// A warp tells others of itself: an atomic operation, a volatile store.
    pub fn release(&mut self, own: u32) {
        join(&mut self.released, &self.of[own as usize]);
    }

    /// A warp looks at what others told.
    pub fn acquire(&mut self, own: u32) {
        join(&mut self.of[own as usize], &self.released);
        self.learnt(own);
    }

    /// A warp arrives at the `mbarrier` at `offset`.
    pub fn arrive_at(&mut self, own: u32, offset: u64) {
        let clock = self.of[own as usize];
        match self.objects.iter_mut().find(|(at, _)| *at == offset) {
            Some((_, object)) => join(object, &clock),
            None => self.objects.push((offset, clock)),
        }
        self.step(own);
    }

    /// A warp saw a phase of the `mbarrier` at `offset` end.
    pub fn leave_from(&mut self, own: u32, offset: u64) {
        if let Some((_, object)) = self.objects.iter().find(|(at, _)| *at == offset) {
            join(&mut self.of[own as usize], object);
            self.learnt(own);
        }
    }
}
