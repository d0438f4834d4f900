//! What a zygote says of its children: which were forked, which ended and how. Its reader writes, each child's owner waits.

use std::collections::BTreeMap;

use tokio::sync::watch;

use super::error::How;

/// What is known.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Children that were forked, or why not.
    pub forked: BTreeMap<u64, Result<(), String>>,
    /// Children that ended.
    pub ended: BTreeMap<u64, How>,
    /// The zygote itself is gone, and all with it: how, and what it said.
    pub gone: Option<How>,
}

/// What is known, as it changes.
#[derive(Debug)]
pub(super) struct Ledger(watch::Sender<State>);

impl Ledger {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(State::default()))
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut State)) {
        self.0.send_modify(change);
    }

    /// Waits until a child was forked, or could not be.
    pub(super) async fn forked(&self, child: u64) -> Result<(), String> {
        self.find(|state| {
            let gone = || state.gone.as_ref().map(|how| Err(format!("its zygote {how}")));
            state.forked.get(&child).cloned().or_else(gone)
        })
        .await
        .unwrap_or_else(|| Err("its zygote is not listened to any more".to_owned()))
    }

    /// Waits until a child has ended, by itself or with all others.
    pub(super) async fn ended(&self, child: u64) -> How {
        self.find(|state| state.ended.get(&child).cloned().or_else(|| state.gone.clone()))
            .await
            .unwrap_or_else(|| How::Other("was left by its zygote".to_owned()))
    }

    async fn find<T>(&self, wanted: impl Fn(&State) -> Option<T>) -> Option<T> {
        let mut receiver = self.0.subscribe();
        loop {
            if let Some(found) = wanted(&receiver.borrow_and_update()) {
                return Some(found);
            }
            receiver.changed().await.ok()?;
        }
    }
}

/// How a process ended, from its wait status (`wait(2)`): Linux and the BSDs encode it alike.
pub(super) fn how(status: i32) -> How {
    use std::os::unix::process::ExitStatusExt;
    let status = std::process::ExitStatus::from_raw(status);
    match (status.code(), status.signal()) {
        (Some(code), _) => How::Exited(code),
        (None, Some(signal)) => How::Signalled(signal),
        (None, None) => How::Other("ended in a way that has no name".to_owned()),
    }
}
