//! Plans and codes by asking a model.
//!
//! A question is asked, and the answer read leniently. What can't be read, or not be applied, is told to the model once, with what is
//! wrong with it; then it counts as unusable. Each exchange is handed to the watch, failed ones too, so that a run shows what was
//! sent and what came.

use stitch_profiles::brief::tokens as estimated;
use tokio_util::sync::CancellationToken;

use crate::answer::{Reading, Source, read_code, read_plan, spoken};
use crate::chat::{Asked, Chat, Failure, Finish, Message, Reply};
use crate::edit::Scope;
use crate::engine::{Brief, Engine, EngineError, Exchange, Feedback, Proposal, Tokens, Watch};
use crate::prompts::{Length, Prompts, Request};
use crate::{Plan, Task};

/// A model that plans and codes.
pub struct Llm {
    chat: Chat,
    prompts: Prompts,
    budget: Option<u64>,
    spent: u64,
}

/// An answer that can't be used.
struct Unusable {
    answer: String,
    reason: String,
}

/// Reads the text of an answer; with what was unusual about it.
type Read<'a, T> = dyn Fn(&str) -> Result<(T, Vec<String>), Problem> + Sync + 'a;

/// What is wrong with an answer.
struct Problem {
    what: String,
    /// Whether telling the model may help.
    may_help: bool,
}

/// A question and what has been said about it.
struct Talk<'a> {
    request: Request<'a>,
    brief: &'a Brief,
    length: Length,
    /// What was said after the question: answers, and what is wrong with them.
    later: Vec<Message>,
    watch: &'a dyn Watch,
    cancel: &'a CancellationToken,
}

impl Talk<'_> {
    fn role(&self) -> String {
        let role = self.request.role();
        if self.later.is_empty() { role.to_owned() } else { format!("{role}-repair") }
    }
}

impl Llm {
    /// An engine that spends at most `budget` tokens, sent and received together.
    ///
    /// # Errors
    /// The prompts are malformed, which a test rules out.
    pub fn new(chat: Chat, budget: Option<u64>) -> Result<Self, EngineError> {
        Ok(Self { chat, prompts: Prompts::new()?, budget, spent: 0 })
    }

    /// Tokens spent so far.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// The conversation partner.
    pub fn chat(&self) -> &Chat {
        &self.chat
    }

    /// Asks until the answer can be read by `read`, but not more than twice.
    async fn answered<T>(
        &mut self,
        mut talk: Talk<'_>,
        read: &Read<'_, T>,
    ) -> Result<Result<T, Unusable>, EngineError>
    where
        T: Send,
    {
        loop {
            let is_last = !talk.later.is_empty();
            let (reply, mut exchange) = self.asked(&mut talk).await?;
            let read = match said(&reply, &self.chat) {
                Ok(text) if is_cut(&reply) && !is_last && talk.request.role() == "coder" => {
                    Err((text, cut(&reply, &self.chat)))
                }
                Ok(text) => read(&text).map_err(|problem| (text, problem)),
                Err(problem) => Err((spoken(&reply.text).text, problem)),
            };
            let problem = match &read {
                Ok((_, notes)) => {
                    exchange.notes.extend(notes.iter().cloned());
                    None
                }
                Err((_, problem)) => Some(problem.what.clone()),
            };
            exchange.notes.extend(problem);
            talk.watch.exchanged(&exchange);
            let (text, problem) = match read {
                Ok((value, _)) => return Ok(Ok(value)),
                Err(failed) => failed,
            };
            if is_last || !problem.may_help {
                let mut reason = problem.what;
                if is_last && is_cut(&reply) {
                    reason = format!("{reason} {}", raise_the_limit(&self.chat));
                }
                return Ok(Err(Unusable { answer: text, reason }));
            }
            let repair = self.prompts.repair(talk.request, talk.brief, &problem.what)?;
            // Some servers take no message without text.
            let text = if text.trim().is_empty() { "(no answer)".to_owned() } else { text };
            talk.later = vec![Message::new("assistant", text), Message::new("user", repair)];
        }
    }

    /// Asks once; a question that is too long for the model once more without measurements and history. The exchange of the answer is
    /// not yet handed to the watch.
    async fn asked(&mut self, talk: &mut Talk<'_>) -> Result<(Reply, Exchange), EngineError> {
        let mut notes = Vec::new();
        loop {
            let (system, user) = self.prompts.render(talk.request, talk.brief, talk.length)?;
            let mut messages = vec![Message::new("system", system), Message::new("user", user)];
            messages.extend(talk.later.iter().cloned());
            self.check_budget(&messages, talk.brief)?;
            let role = talk.role();
            let asked =
                self.chat.ask(&messages, &|bytes| talk.watch.streaming(&role, bytes), talk.cancel).await;
            let tokens = tokens(&messages, &asked);
            self.spent = self.spent.saturating_add(tokens.prompt).saturating_add(tokens.completion);
            let Asked { reply, failure, retries, took, .. } = asked;
            let exchange = self.exchange(role, &messages, &reply, tokens, took.as_secs_f64(), retries);
            let error = match failure {
                None => {
                    return Ok((
                        reply,
                        Exchange { notes: [notes, exchange.notes.clone()].concat(), ..exchange },
                    ));
                }
                Some(Failure::TooLong(said)) if talk.length == Length::Full => {
                    talk.length = Length::Short;
                    notes.push(format!(
                        "The question was too long for the model ({said}); asked again without measurements and history."
                    ));
                    talk.watch.exchanged(&Exchange { error: Some(said), ..exchange });
                    continue;
                }
                Some(Failure::TooLong(said)) => EngineError::Endpoint(format!(
                    "The model can't read as much at once ({}), not even without measurements and history. Select fewer functions, or \
                     choose a model that reads more with `model.name`.",
                    said.trim_end_matches('.')
                )),
                Some(Failure::Final(error)) => error,
            };
            talk.watch.exchanged(&Exchange { error: Some(error.to_string()), notes, ..exchange });
            return Err(error);
        }
    }

    fn exchange(
        &self,
        role: String,
        messages: &[Message],
        reply: &Reply,
        tokens: Tokens,
        seconds: f64,
        retries: Vec<String>,
    ) -> Exchange {
        let heard = spoken(&reply.text);
        let thinking = [reply.thinking.as_str(), heard.thinking.as_str()].join("\n").trim().to_owned();
        Exchange {
            role,
            model: reply.model.clone().or_else(|| self.chat.model()).unwrap_or_default(),
            messages: messages
                .iter()
                .map(|message| (message.role.to_owned(), self.chat.redact(&message.content)))
                .collect(),
            answer: heard.text,
            thinking,
            finish_reason: reply.finish_word.clone(),
            tokens,
            seconds,
            retries,
            notes: reply.notes.clone(),
            error: None,
        }
    }

    /// Refuses a question that would cost more than is left.
    fn check_budget(&self, messages: &[Message], brief: &Brief) -> Result<(), EngineError> {
        let question = estimated(messages.iter().map(|message| message.content.len()).sum());
        let left = self.budget.map(|budget| budget.saturating_sub(self.spent));
        match [left, brief.tokens_left].into_iter().flatten().min() {
            Some(left) if left < question => Err(EngineError::Budget { budget: self.budget.unwrap_or(left) }),
            _ => Ok(()),
        }
    }

    async fn planned(&mut self, talk: Talk<'_>) -> Result<Plan, EngineError> {
        let read = |text: &str| match read_plan(text) {
            Ok(reading) => Ok((reading.plan, reading.notes)),
            Err(error) => Err(Problem { what: error.to_string(), may_help: true }),
        };
        let role = talk.request.role();
        self.answered(talk, &read).await?.map_err(|unusable| {
            EngineError::Answer(format!(
                "The {role} got no answer from the model that can be used. {} If it stays so, choose another model with `model.name`, or \
                 set `optimize.engine` to `builtin`.",
                unusable.reason
            ))
        })
    }
}

impl Engine for Llm {
    async fn plan(
        &mut self,
        brief: &Brief,
        watch: &dyn Watch,
        cancel: &CancellationToken,
    ) -> Result<Plan, EngineError> {
        let talk =
            Talk { request: Request::Plan, brief, length: Length::Full, later: Vec::new(), watch, cancel };
        self.planned(talk).await
    }

    async fn replan(
        &mut self,
        brief: &Brief,
        plan: &Plan,
        reason: &str,
        watch: &dyn Watch,
        cancel: &CancellationToken,
    ) -> Result<Plan, EngineError> {
        let request = Request::Replan(plan, reason);
        let talk = Talk { request, brief, length: Length::Full, later: Vec::new(), watch, cancel };
        self.planned(talk).await
    }

    async fn code(
        &mut self,
        brief: &Brief,
        task: &Task,
        feedback: Option<&Feedback>,
        watch: &dyn Watch,
        cancel: &CancellationToken,
    ) -> Result<Proposal, EngineError> {
        let request = feedback.map_or(Request::Code(task), |feedback| Request::CodeAgain(task, feedback));
        let talk = Talk { request, brief, length: Length::Full, later: Vec::new(), watch, cancel };
        let scope = Scope::of(brief);
        let targets: Vec<_> = task.scope.iter().chain(&brief.scope).cloned().collect();
        let source = Source { file: &brief.file, text: &brief.current, targets: &targets, scope: &scope };
        let read = |text: &str| match read_code(text, source) {
            Ok(Reading::Candidate { text, explanation, notes }) => {
                let explanation = if explanation.is_empty() { task.title.clone() } else { explanation };
                Ok((Proposal::Candidate { text, explanation }, notes))
            }
            Ok(Reading::Declined { reason }) => Ok((Proposal::Declined { reason }, Vec::new())),
            Err(error) => Err(Problem { what: error.to_string(), may_help: true }),
        };
        let answered = self.answered(talk, &read).await?;
        Ok(answered.unwrap_or_else(|Unusable { answer, reason }| Proposal::Unusable { answer, reason }))
    }
}

/// The text of an answer, or why there is none.
fn said(reply: &Reply, chat: &Chat) -> Result<String, Problem> {
    let heard = spoken(&reply.text);
    let has_thought = !reply.thinking.is_empty() || !heard.thinking.is_empty();
    let problem = |what: String, may_help| Err(Problem { what, may_help });
    if reply.finish == Some(Finish::Filtered) {
        return problem(
            "The endpoint's content filter held the answer back. Choose another model.".to_owned(),
            false,
        );
    }
    if !heard.text.is_empty() {
        return Ok(heard.text);
    }
    if !reply.refusal.is_empty() {
        return problem(format!("The model refuses: \"{}\"", reply.refusal), false);
    }
    if has_thought && (is_cut(reply) || heard.is_cut) {
        let used = reply.usage.map_or_else(String::new, |(_, used)| format!(", after {used} tokens"));
        return problem(
            format!(
                "The answer was cut off while the model was still thinking{used} (`max_tokens`). {}",
                raise_the_limit(chat)
            ),
            false,
        );
    }
    if let Some(tool) = reply.tools.first() {
        return problem(
            format!(
                "The model called the tool `{tool}`, but there are no tools. The answer is wanted as text."
            ),
            true,
        );
    }
    if has_thought {
        return problem("The answer is empty: the model thought, and then said nothing.".to_owned(), true);
    }
    problem("The answer is empty.".to_owned(), true)
}

fn is_cut(reply: &Reply) -> bool {
    reply.finish == Some(Finish::Length)
}

fn cut(reply: &Reply, chat: &Chat) -> Problem {
    let limit = chat.endpoint().max_tokens.map_or_else(String::new, |limit| format!(" of {limit} tokens"));
    let used = reply.usage.map_or_else(String::new, |(_, used)| format!(" after {used} tokens"));
    let what = format!(
        "It was cut off{used} by the limit{limit} on its length. Answer more briefly, with SEARCH/REPLACE blocks for the changed lines only."
    );
    Problem { what, may_help: true }
}

fn raise_the_limit(chat: &Chat) -> String {
    match chat.endpoint().max_tokens {
        Some(limit) => {
            format!("Raise `model.maxTokens` (it is {limit}), or choose a model that needs fewer.")
        }
        None => {
            "Set `model.maxTokens` to more than the endpoint's own limit, or choose a model that needs fewer."
                .to_owned()
        }
    }
}

/// What an exchange cost: as the endpoint counts, or estimated. A question that no answer came to may have cost nothing; one whose answer
/// broke off was paid for.
fn tokens(messages: &[Message], asked: &Asked) -> Tokens {
    let question = estimated(messages.iter().map(|message| message.content.len()).sum());
    let lost = Tokens {
        prompt: question * asked.lost.len() as u64,
        completion: asked.lost.iter().map(|bytes| estimated(*bytes)).sum(),
        estimated: !asked.lost.is_empty(),
    };
    let reply = &asked.reply;
    let last = match reply.usage {
        Some((prompt, completion)) => Tokens { prompt, completion, estimated: false },
        None => {
            let completion = estimated(reply.text.len() + reply.thinking.len());
            let has_answer = asked.failure.is_none() || completion > 0;
            Tokens { prompt: if has_answer { question } else { 0 }, completion, estimated: true }
        }
    };
    Tokens {
        prompt: last.prompt + lost.prompt,
        completion: last.completion + lost.completion,
        estimated: last.estimated || lost.estimated,
    }
}
