//! What does the work of one program: threads that take it from the [queue](super::queue), and what they leave behind.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::context::Shared;
use super::copies::{self, CopyWork, FillWork};
use super::engine::{Done, Launch, Linked, Stopped};
use super::errors::Code;
use super::estimate;
use super::helper::Helper;
use super::protocol::{Action, Rows};
use super::queue::{Queue, Wait};
use super::report::Direction;
use super::work::{KernelWork, code_of};
use crate::estimate::Shape;
use crate::machine::FaultKind;

/// Pieces of work that wait for each other and are under way at once, at most.
const MOST_THREADS: usize = 32;

/// How long work goes on after its program has ended without waiting for it. On a device it would be abandoned at once; but
/// what most of it was is worth knowing.
pub(super) const AFTERMATH: Duration = Duration::from_secs(2);

/// Kernels that took no longer are done by the thread that answers the program: to hand them to another takes as long.
const BRIEF: Duration = Duration::from_micros(20);

/// A piece of work, with all that is needed to do it.
pub(super) enum Task {
    Kernel {
        linked: Arc<dyn Linked>,
        name: String,
        work: Box<KernelWork>,
    },
    Copy(Box<CopyWork>),
    /// The second half of a copy whose bytes were put aside at this address.
    Staged {
        rows: Box<Rows>,
        aside: u64,
    },
    Fill(Box<FillWork>),
    Host {
        function: u64,
        data: u64,
        callback: Option<u64>,
    },
    /// Writes the estimated time down.
    Record(Arc<AtomicU64>),
    /// Gives memory of a pool back.
    Free(u64),
    /// Nothing: somebody waits for its turn.
    Turn,
}

/// The threads and their work.
pub(super) struct Processor {
    pub shared: Arc<Shared>,
    pub queue: Queue<Task>,
    pub helper: Helper,
    /// Estimated time on the device, in nanoseconds.
    clock: AtomicU64,
    /// What kernels printed since the program last synchronised.
    printed: Mutex<Vec<u8>>,
    /// The fault that ended the device's work.
    lost: Mutex<Option<Code>>,
    /// Pieces of work that were begun, or would have been, when nobody wanted them any more.
    abandoned: AtomicUsize,
    /// Kernels that were done within [`BRIEF`] the last time, and with how many threads.
    brief: Mutex<HashMap<u64, u64>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Processor {
    pub(super) fn start(shared: Arc<Shared>, helper: Helper) -> Arc<Self> {
        let processor = Arc::new(Self {
            shared,
            queue: Queue::new(),
            helper,
            clock: AtomicU64::new(0),
            printed: Mutex::default(),
            lost: Mutex::default(),
            abandoned: AtomicUsize::new(0),
            brief: Mutex::default(),
            threads: Mutex::default(),
        });
        processor.add_thread();
        processor
    }

    fn add_thread(self: &Arc<Self>) {
        let mut threads = locked(&self.threads);
        if threads.len() < MOST_THREADS {
            let own = Arc::clone(self);
            threads.push(std::thread::spawn(move || own.work()));
        }
    }

    fn work(self: &Arc<Self>) {
        while let Some((number, task, alone)) = self.queue.take() {
            if alone {
                self.add_thread();
            }
            self.see_through(number, task);
        }
    }

    /// Does work that was begun.
    fn see_through(&self, number: u64, task: Task) {
        if catch_unwind(AssertUnwindSafe(|| self.perform(task))).is_err() {
            let note = "the simulator failed while it ran the program's work: please report this";
            self.shared.report().note(note.to_owned());
            self.lose(Code::LAUNCH_FAILURE);
        }
        if self.queue.end(number) {
            self.shared.memory.bell().ring();
        }
    }

    /// Does work at once where that is likely to be quicker than to hand it over, and nothing is before it. Its number, or the
    /// work again.
    pub(super) fn do_now(&self, task: Task) -> Result<u64, Task> {
        let brief = match &task {
            Task::Record(_) | Task::Turn => true,
            Task::Kernel { work, .. } => {
                locked(&self.brief).get(&work.function).is_some_and(|&most| work.threads() <= most)
            }
            _ => false,
        };
        match if brief { self.queue.begin() } else { None } {
            Some(number) => {
                self.see_through(number, task);
                Ok(number)
            }
            None => Err(task),
        }
    }

    /// Ends all work. Where the program ended by itself, what it left is done first, if that does not take long.
    pub(super) fn finish(&self) {
        let begun = Instant::now();
        let all = Wait::Until(u64::MAX);
        let given_up = || self.shared.cancel.load(Ordering::Relaxed) || begun.elapsed() > AFTERMATH;
        while !given_up() && !self.queue.wait(&all, Duration::from_millis(20)) {}
        self.shared.cancel.store(true, Ordering::Relaxed);
        let waiting = self.queue.close();
        loop {
            let Some(thread) = locked(&self.threads).pop() else { break };
            // What it could panic with was caught and noted.
            let _ = thread.join();
        }
        let abandoned = waiting + self.abandoned.load(Ordering::Relaxed);
        if abandoned > 0 {
            self.shared.report().abandoned(abandoned);
        }
    }

    /// Passes estimated time, and returns when it is then.
    pub(super) fn pass(&self, nanoseconds: u64) -> u64 {
        self.clock.fetch_add(nanoseconds, Ordering::Relaxed) + nanoseconds
    }

    /// Why the device does no more work.
    pub(super) fn lost(&self) -> Option<Code> {
        *locked(&self.lost)
    }

    fn lose(&self, code: Code) {
        locked(&self.lost).get_or_insert(code);
    }

    /// A device that works again.
    pub(super) fn restore(&self) {
        *locked(&self.lost) = None;
    }

    /// What kernels printed, once.
    pub(super) fn take_printed(&self) -> Vec<u8> {
        std::mem::take(&mut *locked(&self.printed))
    }

    /// Bytes that kernels printed and nobody has taken.
    pub(super) fn printed(&self) -> usize {
        locked(&self.printed).len()
    }

    fn perform(&self, task: Task) {
        if !matches!(task, Task::Turn | Task::Record(_)) && self.shared.cancel.load(Ordering::Relaxed) {
            self.abandoned.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let lost = self.lost();
        match task {
            Task::Record(time) => time.store(self.pass(0), Ordering::Relaxed),
            Task::Host { function, data, callback } => {
                // After a fault, callbacks are told of it, and other functions are not called.
                if lost.is_some() && callback.is_none() {
                    return;
                }
                let callback = callback.map(|stream| (stream, lost.map_or(0, |Code(code)| code)));
                self.ask(&Action::Call { function, data, callback }, &[]);
            }
            Task::Free(start) => {
                let _ = self.shared.memory.free(start);
            }
            Task::Staged { rows, aside } => {
                if lost.is_none() {
                    self.unstage(&rows, aside);
                }
                let _ = self.shared.memory.free(aside);
            }
            Task::Turn => {}
            _ if lost.is_some() => {}
            Task::Kernel { linked, name, work } => self.run(&*linked, &name, &work),
            Task::Copy(work) => self.copy(&work),
            // Checked when it was issued; what was freed since is not filled.
            Task::Fill(work) => drop(copies::perform_fill(self, &work)),
        }
    }

    fn ask(&self, action: &Action, bytes: &[u8]) -> bool {
        self.helper.ask(action, bytes, &self.shared.cancel)
    }

    fn copy(&self, work: &CopyWork) {
        // Checked when it was issued; what was freed since is not copied.
        let Ok(Some((rows, direction))) = copies::perform_copy(self, work) else { return };
        if self.ask(&Action::Copy(rows), &[]) && direction == Direction::HostToDevice {
            self.shared.watch.to_device(&rows);
        }
    }

    /// Puts bytes where they belong.
    fn unstage(&self, rows: &Rows, aside: u64) {
        let mut bytes = vec![0; usize::try_from(rows.width).unwrap_or(0)];
        let memory = &self.shared.memory;
        let moved = memory.read(aside, &mut bytes).and_then(|()| memory.write(rows.to, &bytes));
        if moved.is_ok() {
            self.pass(estimate::copy(self.shared.device, rows.bytes(), true));
            self.shared.report().copied(Direction::HostToDevice, rows.bytes());
            self.shared.watch.to_device(rows);
        }
    }

    fn run(&self, linked: &dyn Linked, name: &str, work: &KernelWork) {
        let shared = &self.shared;
        shared.watch.before_use(&shared.memory);
        let launch = Launch {
            kernel: name,
            grid: work.grid,
            block: work.block,
            dynamic_shared: u32::try_from(work.dynamic_shared).unwrap_or(u32::MAX),
            parameters: &work.parameters,
            cooperative: work.cooperative,
            cluster: work.cluster.map(|size| size.max(1)),
        };
        let print = |bytes: &[u8]| locked(&self.printed).extend_from_slice(bytes);
        let begun = Instant::now();
        let Done { counted, defects, stopped } = linked.run(&launch, &shared.memory, &print, &shared.cancel);
        if begun.elapsed() <= BRIEF {
            locked(&self.brief).insert(work.function, work.threads());
        } else {
            locked(&self.brief).remove(&work.function);
        }
        let taken = linked.kernel(name).map(|kernel| {
            let shape = Shape {
                blocks: work.grid.iter().map(|&n| u64::from(n)).product(),
                threads: work.block.iter().product(),
                registers: kernel.registers,
                shared: kernel.shared + work.dynamic_shared,
            };
            (shape, crate::estimate::kernel(shared.device, &shape, &counted))
        });
        let time = taken.as_ref().map_or(0, |(_, estimate)| estimate::nanoseconds(estimate.seconds));
        self.pass(time);
        shared.report().found(defects);
        shared.report().launched(&launch, taken, counted, stopped.is_none());
        if let Some(stopped) = stopped {
            let given_up = usize::from(stopped.kind == FaultKind::Cancelled);
            self.abandoned.fetch_add(given_up, Ordering::Relaxed);
            // Said before the program can know of it.
            self.complain(&stopped);
            let code = code_of(stopped.kind);
            shared.report().stopped(&launch, *stopped);
            self.lose(code);
        }
    }

    /// Failed assertions are said at once, whether the program waits or not.
    fn complain(&self, stopped: &Stopped) {
        let text = stopped.complaint();
        if !text.is_empty() {
            self.ask(&Action::Complain { bytes: text.len() as u64 }, text.as_bytes());
        }
    }
}
