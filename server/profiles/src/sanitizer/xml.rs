//! The XML report: records with named elements below one root.
//!
//! There is no published schema, and the elements differ by the kind of record, so that a record is kept as paths and texts and asked for
//! what it has. Entities other than XML's own are left out: nothing is expanded.

use std::io::BufRead;

use quick_xml::Reader;
use quick_xml::events::Event;

use super::location::{Frame, Location};
use super::model::{Defect, DefectKind, Indices, SanitizerReport};
use super::{SanitizerError, text};
use crate::kernel::LinePlace;
use crate::note::{Note, NoteKind};

/// The root element.
const ROOT: &str = "ComputeSanitizerOutput";

/// The most texts that one record may have.
const MOST_TEXTS: usize = 4096;

/// The deepest nesting that is followed.
const DEEPEST: usize = 32;

/// One record: the texts of its elements, by the path of names below the record. Repeated elements stand in order.
#[derive(Default)]
struct Record {
    texts: Vec<(String, String)>,
}

/// What was read so far.
#[derive(Default)]
struct Parsing {
    report: SanitizerReport,
    /// The names of the elements that are open.
    path: Vec<String>,
    record: Option<Record>,
    /// The root was the tool's.
    root: bool,
}

pub(super) fn read(reader: impl BufRead) -> Result<SanitizerReport, SanitizerError> {
    let mut xml = Reader::from_reader(reader);
    let mut parsing = Parsing::default();
    let mut buffer = Vec::new();
    let why = loop {
        buffer.clear();
        match xml.read_event_into(&mut buffer) {
            Ok(Event::Start(start)) => parsing.start(start.local_name().as_ref()),
            Ok(Event::End(_)) => {
                parsing.end();
                if parsing.path.is_empty() {
                    break None;
                }
            }
            Ok(Event::Empty(start)) => {
                parsing.root |= parsing.path.is_empty() && start.local_name().as_ref() == ROOT;
            }
            Ok(Event::Text(text)) => parsing.text(&text),
            Ok(Event::CData(text)) => parsing.text(&text),
            Ok(Event::GeneralRef(name)) => parsing.text(&entity(&name).unwrap_or_default()),
            Ok(Event::Eof) if parsing.path.is_empty() => break None,
            Ok(Event::Eof) => break Some("it ends in the middle of an element".to_owned()),
            Ok(_) => {}
            Err(error) => break Some(error.to_string()),
        }
        if parsing.path.len() > DEEPEST {
            break Some("elements are nested too deep".to_owned());
        }
    };
    if !parsing.root {
        return Err(SanitizerError::NotSanitizer);
    }
    if why.is_some() {
        parsing.end_early();
    }
    let mut report = parsing.report;
    match why {
        Some(why) => return Ok(broken(report, xml.buffer_position(), &why)),
        None => report.errors = Some(report.defects.iter().map(|defect| defect.count).sum()),
    }
    Ok(report)
}

impl Parsing {
    fn start(&mut self, name: &str) {
        self.root |= self.path.is_empty() && name == ROOT;
        if self.path.len() == 1 && name == "record" {
            self.record = Some(Record::default());
        } else if let Some(record) = &mut self.record {
            record.open(&self.path, name);
        }
        self.path.push(name.to_owned());
    }

    fn end(&mut self) {
        self.path.pop();
        if self.path.len() == 1
            && let Some(record) = self.record.take()
        {
            self.report.push(record.defect());
        }
    }

    /// The file breaks off within a record. Where its words were read, the tool found something, whatever else it was to say of it.
    fn end_early(&mut self) {
        if let Some(record) = self.record.take().filter(|record| record.words().is_some()) {
            self.report.push(record.defect());
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(record) = &mut self.record {
            record.add(&self.path, text);
        }
    }
}

fn broken(mut report: SanitizerReport, from: u64, why: &str) -> SanitizerReport {
    report.notes.push(Note::new(
        NoteKind::Unreadable,
        format!("The file is damaged from byte {from} on ({why}): there may be more errors than are shown."),
    ));
    report
}

/// XML's own entities, and characters by their number.
fn entity(name: &str) -> Option<String> {
    let code = match name {
        "lt" => return Some("<".into()),
        "gt" => return Some(">".into()),
        "amp" => return Some("&".into()),
        "quot" => return Some("\"".into()),
        "apos" => return Some("'".into()),
        _ => name.strip_prefix('#')?,
    };
    let number = match code.strip_prefix('x') {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => code.parse().ok()?,
    };
    char::from_u32(number).map(String::from)
}

impl Record {
    /// An element begins: a new entry for its text.
    fn open(&mut self, path: &[String], name: &str) {
        if self.texts.len() < MOST_TEXTS {
            self.texts.push((below(path, Some(name)), String::new()));
        }
    }

    /// Text of the innermost element.
    fn add(&mut self, path: &[String], text: &str) {
        let path = below(path, None);
        if let Some((_, known)) = self.texts.iter_mut().rev().find(|(known, _)| *known == path) {
            known.push_str(text);
        }
    }

    fn text(&self, path: &str) -> Option<&str> {
        self.texts
            .iter()
            .find(|(known, _)| known == path)
            .map(|(_, text)| text.trim())
            .filter(|text| !text.is_empty())
    }

    fn first(&self, paths: &[&str]) -> Option<&str> {
        paths.iter().find_map(|path| self.text(path))
    }

    /// The groups of elements below each element with this path: frames of a stack.
    fn groups(&self, path: &str) -> Vec<Self> {
        let inner = format!("{path}/");
        let mut groups: Vec<Self> = Vec::new();
        for (known, text) in &self.texts {
            if known == path {
                groups.push(Self::default());
            } else if let (Some(rest), Some(group)) = (known.strip_prefix(&inner), groups.last_mut()) {
                group.texts.push((rest.to_owned(), text.clone()));
            }
        }
        groups
    }

    fn index(&self, path: &str) -> Option<Indices> {
        let part = |name: &str| self.text(&format!("{path}/{name}")).and_then(|text| text.parse().ok());
        Some(Indices::one([part("x")?, part("y").unwrap_or(0), part("z").unwrap_or(0)]))
    }

    fn place(&self) -> Option<LinePlace> {
        let line = self.text("line")?.parse().ok().filter(|line| *line > 0)?;
        Some(LinePlace { file: self.first(&["path", "file"])?.to_owned(), line })
    }

    fn location(&self) -> Location {
        Location { function: self.text("func").map(str::to_owned), place: self.place() }
    }

    /// What happened, in the tool's words.
    fn words(&self) -> Option<&str> {
        self.first(&["what/text", "text", "what/message"])
    }

    fn defect(&self) -> Defect {
        let words = self.words().unwrap_or("an error without a text");
        let mut defect = text::head(self.kind(words), words);
        let places: Vec<Location> = self.groups("where").iter().map(Self::location).collect();
        let mut places = places.into_iter();
        if let Some(at) = places.next() {
            defect.at = at;
        }
        defect.others.extend(places.map(|at| ("access".to_owned(), at)));
        defect.device_stack = self.groups("deviceStack/frame").iter().map(Self::location).collect();
        defect.host_stack = self
            .groups("hostStack/frame")
            .iter()
            .map(|frame| Frame {
                function: frame.text("func").map(str::to_owned),
                place: frame.place(),
                module: frame.text("module").map(str::to_owned),
            })
            .collect();
        defect.threads = self.index("who/threadIdx");
        defect.blocks = self.index("who/blockIdx");
        let number = |text: &str| text.trim_start_matches("0x").parse::<u64>().ok();
        let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        defect.size = self.first(&["what/size", "what/bytes"]).and_then(number).or(defect.size);
        defect.address = self.first(&["what/accessAddress", "what/address"]).and_then(hex).or(defect.address);
        defect.space =
            self.text("what/space").map(|space| space.trim_matches('_').to_owned()).or(defect.space);
        defect.api = self.text("what/api").map(str::to_owned).or(defect.api);
        defect.error = self.text("what/result").and_then(|text| text.parse().ok()).or(defect.error);
        defect.hazards =
            self.first(&["what/hazards", "what/hazardCount"]).and_then(number).or(defect.hazards);
        defect
    }

    /// The kind, by the tool's own name of it where the words leave it open.
    fn kind(&self, words: &str) -> DefectKind {
        let misaligned = words.contains("misaligned")
            || self.text("what/error").is_some_and(|error| error.contains("misaligned"));
        if misaligned {
            return DefectKind::Misaligned;
        }
        text::kind_of(words).unwrap_or(match self.text("kind").unwrap_or_default().to_lowercase().as_str() {
            "precise" | "memory" => DefectKind::OutOfBounds,
            "imprecise" | "exception" => DefectKind::Exception,
            "api" => DefectKind::ApiError,
            "race" | "racecheck" => DefectKind::Race,
            "initcheck" => DefectKind::UninitializedRead,
            "synccheck" | "barrier" => DefectKind::Barrier,
            "leak" => DefectKind::Leak,
            _ => DefectKind::Other,
        })
    }
}

/// A path below the record: without the root and the record itself.
fn below(path: &[String], name: Option<&str>) -> String {
    let parts = path.iter().skip(2).map(String::as_str).chain(name);
    parts.collect::<Vec<_>>().join("/")
}
