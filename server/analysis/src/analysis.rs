//! What is known of one version of a source file, and the analyzer that keeps it up to date while a person types.

use std::sync::Arc;

use stitch_findings::{Finding, Span};

use crate::cuda::{Document, KeepGoing};
use crate::python::Reader;
use crate::{Language, Outline, Unit, UnknownSource, Workspace};

/// The work was cut off before it was done; asking again with the same text goes on where it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutOff;

/// Texts longer than this, in bytes, are not analysed: no person wrote them, and nothing may block the editor.
const LARGEST: usize = 4 << 20;

/// What is known of one version of a source file.
#[derive(Clone, Debug)]
pub struct Analysis {
    language: Language,
    source: Arc<str>,
    outline: Outline,
    findings: Vec<Finding>,
    units: Vec<Unit>,
    unknown_sources: Vec<UnknownSource>,
    too_large: bool,
}

impl Analysis {
    /// Analyses a whole text at once, with nothing known of other files.
    pub fn of(language: Language, source: &str) -> Self {
        let source: Arc<str> = source.into();
        // Nothing cuts it off, so it can only succeed.
        match Analyzer::new(language).update(source.clone(), &Workspace::default(), &|| true) {
            Ok(analysis) => Arc::unwrap_or_clone(analysis),
            Err(CutOff) => Self::nothing(language, source, false),
        }
    }

    fn nothing(language: Language, source: Arc<str>, too_large: bool) -> Self {
        Self {
            language,
            source,
            outline: Outline::default(),
            findings: Vec::new(),
            units: Vec::new(),
            unknown_sources: Vec::new(),
            too_large,
        }
    }

    /// The language it was read as.
    pub fn language(&self) -> Language {
        self.language
    }

    /// The text.
    pub fn source(&self) -> &Arc<str> {
        &self.source
    }

    /// What it is made of.
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    /// What the static rules found, in the order of the text.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The CUDA texts inside a Python file.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// What a Python file gives to a compiler of CUDA without saying what it is.
    pub fn unknown_sources(&self) -> &[UnknownSource] {
        &self.unknown_sources
    }

    /// Whether the text was too large to be analysed, so that nothing is known of it.
    pub fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// The spans of all function definitions: the scopes that findings hang on.
    pub fn function_spans(&self) -> Vec<Span> {
        self.outline.functions.iter().filter(|f| f.is_definition).map(|f| f.span).collect()
    }
}

/// Keeps the analysis of one document up to date.
pub struct Analyzer {
    language: Language,
    cuda: Option<Document>,
    python: Option<Reader>,
    /// The last result, and the fingerprint of the workspace it was made with.
    last: Option<(Arc<Analysis>, u64)>,
}

impl Analyzer {
    /// An analyzer that has seen no text yet.
    pub fn new(language: Language) -> Self {
        Self { language, cuda: None, python: None, last: None }
    }

    /// Analyses `source`, reusing what is known of the last text.
    ///
    /// `keep_going` is asked often, at least each millisecond of parsing and between any two functions.
    ///
    /// # Errors
    /// [`CutOff`] when `keep_going` said no. Asking again with the same text goes on where it stopped.
    pub fn update(
        &mut self,
        source: Arc<str>,
        workspace: &Workspace,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Arc<Analysis>, CutOff> {
        let fingerprint = workspace.fingerprint();
        if let Some((last, of)) = &self.last
            && *of == fingerprint
            && *last.source == *source
        {
            return Ok(last.clone());
        }
        let analysis = if source.len() > LARGEST {
            self.cuda = None;
            self.python = None;
            Analysis::nothing(self.language, source, true)
        } else {
            match self.language {
                Language::Cuda => self.cuda(source, workspace, keep_going)?,
                Language::Python => self.python(source, workspace, keep_going)?,
            }
        };
        let analysis = Arc::new(analysis);
        self.last = Some((analysis.clone(), fingerprint));
        Ok(analysis)
    }

    fn cuda(
        &mut self,
        source: Arc<str>,
        workspace: &Workspace,
        keep_going: KeepGoing,
    ) -> Result<Analysis, CutOff> {
        let document = self.cuda.get_or_insert_with(Document::new);
        let (outline, findings) = document.update(&source, workspace, keep_going).ok_or(CutOff)?;
        Ok(Analysis { outline, findings, ..Analysis::nothing(Language::Cuda, source, false) })
    }

    fn python(
        &mut self,
        source: Arc<str>,
        workspace: &Workspace,
        keep_going: KeepGoing,
    ) -> Result<Analysis, CutOff> {
        let reader = self.python.get_or_insert_with(Reader::new);
        let read = reader.update(&source, workspace, keep_going)?;
        let nothing = Analysis::nothing(Language::Python, source, false);
        Ok(Analysis {
            outline: read.outline,
            findings: read.findings,
            units: read.units,
            unknown_sources: read.unknown,
            ..nothing
        })
    }
}
