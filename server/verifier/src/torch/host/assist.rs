//! What a child may ask while it works on a request: that an extension is built, and that a function of it is called, somewhere else.
//!
//! A child with an assistant runs its CUDA extensions on the simulator, whose process and reports stay on this side. The bytes of a call
//! and of its answer pass through regions that are made here, as all tensors do.

use std::future::Future;
use std::os::fd::AsFd;
use std::pin::Pin;

use serde::Deserialize;
use serde_json::json;

use super::channel::{Channel, NoLine};
use super::region::Region;
use crate::torch::builds::{Answer, Asked as Ordered, Builds};

/// The bytes of one call are no more than these.
const MOST_BYTES: u64 = 4 << 30;

/// An extension that is to be built, as `load_inline` and `load` of `torch.utils.cpp_extension` are told.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Extension {
    /// Its name.
    pub name: String,
    /// C++ texts.
    pub cpp: Vec<String>,
    /// CUDA texts.
    pub cuda: Vec<String>,
    /// Functions that Python calls; empty where the text registers them itself.
    pub functions: Vec<String>,
    /// Flags for nvcc.
    pub flags: Vec<String>,
}

/// Why something was not done.
#[derive(Clone, Debug)]
pub enum Unassisted {
    /// The code is wrong; the text is a compiler's.
    Wrong(String),
    /// It can't be done here, for this reason.
    Refused(String),
}

/// An answer that takes time.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T, Unassisted>> + Send + 'a>>;

/// Does what a child asks for.
pub trait Assistant: Send + Sync {
    /// Builds an extension; it is called by the number that this gives.
    fn build(&self, extension: Extension) -> Doing<'_, usize>;
    /// Calls a function of one that was built. The bytes are the runner's (`server/runner/simulated.py`), and so are those of the answer.
    fn call(&self, extension: usize, call: Vec<u8>) -> Doing<'_, Vec<u8>>;
}

/// What a child asks.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(super) enum Asked {
    Build(Extension),
    /// Room for the bytes of a call.
    Room {
        bytes: u64,
    },
    /// Calls, with the bytes that lie in the room.
    Call {
        extension: usize,
    },
    /// Builds what torch has written a build file for.
    Library(Ordered),
}

/// What a line asks, if it asks.
pub(super) fn read(line: &[u8]) -> Option<Asked> {
    if !line.starts_with(br#"{"ask""#) {
        return None;
    }
    serde_json::from_slice(line).ok()
}

/// What is left between a call's bytes and the call.
#[derive(Default)]
pub(super) struct Conversation {
    room: Option<Region>,
}

/// Who answers.
#[derive(Clone, Default)]
pub(super) struct Helpers {
    /// Builds and calls extensions elsewhere.
    pub assistant: Option<std::sync::Arc<dyn Assistant>>,
    /// Builds libraries that the child loads itself.
    pub builds: Option<std::sync::Arc<Builds>>,
}

impl Helpers {
    /// Answers what a line asks. Whether it asked, and somebody was there to answer.
    pub(super) async fn answer(
        &self,
        conversation: &mut Conversation,
        channel: &mut Channel,
        line: &[u8],
    ) -> Result<bool, NoLine> {
        match (read(line), &self.assistant, &self.builds) {
            (Some(Asked::Library(ordered)), _, Some(builds)) => {
                deliver(channel, builds.build(ordered).await).await?;
                Ok(true)
            }
            (None | Some(Asked::Library(_)), ..) | (_, None, _) => Ok(false),
            (Some(asked), Some(assistant), _) => {
                conversation.answer(assistant.as_ref(), channel, asked).await?;
                Ok(true)
            }
        }
    }
}

/// Gives a child the bytes of its library, or what there is instead.
async fn deliver(channel: &mut Channel, answer: Answer) -> Result<(), NoLine> {
    let (mut said, mut passed) = (json!({ "fds": 0 }), None);
    match answer {
        Answer::Built { bytes, name } => {
            let length = bytes.len();
            let made = Region::new(length as u64).and_then(|region| region.write(&bytes).map(|()| region));
            match made {
                Ok(region) => {
                    said = json!({ "library": length, "name": name, "fds": 1 });
                    passed = Some(region);
                }
                Err(error) => said["ordinary"] = error.to_string().into(),
            }
        }
        Answer::Wrong(text) => said["wrong"] = text.into(),
        Answer::Ordinary(reason) => said["ordinary"] = reason.into(),
    }
    let descriptors: Vec<_> = passed.iter().map(|region| region.as_fd()).collect();
    channel.send(&said.to_string(), &descriptors).await.map_err(|_| NoLine::Closed)
}

impl Conversation {
    /// Answers one question.
    pub(super) async fn answer(
        &mut self,
        assistant: &dyn Assistant,
        channel: &mut Channel,
        asked: Asked,
    ) -> Result<(), NoLine> {
        let refused = |error: std::io::Error| Unassisted::Refused(error.to_string());
        let mut passed = None;
        let said = match asked {
            Asked::Library(_) => Err(Unassisted::Refused("nothing builds libraries here".to_owned())),
            Asked::Build(extension) => {
                assistant.build(extension).await.map(|number| json!({ "built": number }))
            }
            Asked::Room { bytes } if bytes > MOST_BYTES => {
                Err(Unassisted::Refused(format!("a call with {} MB of tensors is too large", bytes >> 20)))
            }
            Asked::Room { bytes } => Region::new(bytes).map_err(refused).map(|region| {
                self.room = Some(region);
                json!({ "room": true })
            }),
            Asked::Call { extension } => match self.room.take() {
                None => Err(Unassisted::Refused("a call without bytes".to_owned())),
                Some(room) => {
                    let answer = called(assistant, extension, &room).await;
                    answer.map(|(region, length)| {
                        passed = Some(region);
                        json!({ "answer": length })
                    })
                }
            },
        };
        let mut said = match said {
            Ok(said) => said,
            Err(Unassisted::Wrong(text)) => json!({ "wrong": text }),
            Err(Unassisted::Refused(text)) => json!({ "refused": text }),
        };
        let regions: Vec<&Region> = passed.iter().chain(&self.room).collect();
        said["fds"] = regions.len().into();
        let descriptors: Vec<_> = regions.iter().map(|region| region.as_fd()).collect();
        channel.send(&said.to_string(), &descriptors).await.map_err(|_| NoLine::Closed)
    }
}

async fn called(
    assistant: &dyn Assistant,
    extension: usize,
    room: &Region,
) -> Result<(Region, usize), Unassisted> {
    let refused = |error: std::io::Error| Unassisted::Refused(error.to_string());
    let bytes = room.read(room.size()).await.map_err(refused)?;
    let answer = assistant.call(extension, bytes.to_vec()).await?;
    let region = Region::new(answer.len() as u64).map_err(refused)?;
    let length = answer.len();
    let write = move || region.write(&answer).map(|()| region);
    let written = tokio::task::spawn_blocking(write).await.map_err(std::io::Error::other).flatten();
    Ok((written.map_err(refused)?, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_question_is_one() {
        assert!(matches!(read(br#"{"ask":"room","bytes":7}"#), Some(Asked::Room { bytes: 7 })));
        let Some(Asked::Build(extension)) = read(br#"{"ask":"build","cuda":["x"]}"#) else { panic!() };
        assert_eq!((extension.cuda, extension.functions.len()), (vec!["x".to_owned()], 0));
        for line in [&br#"{"id":"a","ok":true}"#[..], br#"{"ask":"seed"}"#, br#"{"ask""#, b""] {
            assert!(read(line).is_none());
        }
    }
}
