//! Numbers that nobody else knows.

use crate::torch::judge::distributions::Stream;

/// A stream of secret numbers, from a key that the system gave.
pub(super) struct Secrets {
    stream: Stream,
    drawn: u64,
}

impl Secrets {
    /// A stream of its own, whose key nobody can guess.
    pub fn new() -> Self {
        Self { stream: Stream::new(crate::verify::secret()).child(crate::verify::secret()), drawn: 0 }
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.stream.bits(self.drawn)
    }

    /// The next number, uniform from 0 to 1.
    pub fn uniform(&mut self) -> f64 {
        self.drawn += 1;
        self.stream.uniform(self.drawn, 0.0, 1.0)
    }
}
