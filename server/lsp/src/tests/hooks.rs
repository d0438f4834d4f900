//! Methods that only tests have: handlers that panic, never return, or say which version they were given.

use std::time::Duration;

use stitch_findings::{Batch, Measurement, Producer, Provenance, Quantity, ReadText, Span};
use tower_lsp::LspServiceBuilder;
use tower_lsp::jsonrpc::Result;
use tower_lsp::ls_types::HoverParams;

use crate::ingress::pinned;
use crate::server::Server;

impl Server {
    async fn test_panic(&self) -> Result<()> {
        panic!("on purpose")
    }

    async fn test_panic_later(&self) -> Result<()> {
        tokio::time::sleep(Duration::from_millis(5)).await;
        panic!("on purpose")
    }

    async fn test_stuck(&self) -> Result<()> {
        std::future::pending().await
    }

    /// The next analysis panics.
    async fn test_fail_analysis(&self) -> Result<()> {
        self.session.fail_analysis.store(true, std::sync::atomic::Ordering::SeqCst);
        Ok(())
    }

    async fn test_panic_notified(&self) {
        panic!("on purpose")
    }

    async fn test_stuck_notified(&self) {
        std::future::pending().await
    }

    /// The pinned text and the newest one, after a while in which edits come.
    async fn test_pinned(&self, _: HoverParams) -> Result<Option<(String, String)>> {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let Some(document) = pinned() else { return Ok(None) };
        let newest = self.session.document(&document.uri).map(|newest| newest.text.to_source().to_string());
        Ok(Some((document.text.to_source().to_string(), newest.unwrap_or_default())))
    }

    /// Puts a compiler's numbers about the first kernel into the store, as made from the text of now.
    async fn test_measure(&self, _: HoverParams) -> Result<()> {
        let Some(document) = pinned() else { return Ok(()) };
        let source = document.text.to_source();
        let analysis = document.analysed().await.and_then(|analysed| analysed.analysis.clone());
        let Some(kernel) =
            analysis.as_ref().and_then(|analysis| analysis.outline().kernels().next().cloned())
        else {
            return Ok(());
        };
        let measured = [
            (Quantity::Registers, 64.0),
            (Quantity::SharedMemory, 4096.0),
            (Quantity::TheoreticalOccupancy, 0.5),
        ]
        .map(|(quantity, value)| Measurement {
            quantity,
            value,
            subject: kernel.name.clone(),
            span: kernel.name_span,
            note: (quantity == Quantity::TheoreticalOccupancy).then(|| "registers".into()),
            provenance: Provenance {
                producer: Producer::Ptxas,
                tool: "ptxas 13.0".into(),
                device: "sm_90".into(),
                runs: 1,
            },
        });
        let batch = Batch::new(&*source, &[kernel.span], Vec::new(), measured.into());
        self.session.documents().store.replace(
            document.key.as_str(),
            Producer::Ptxas,
            document.key.as_str(),
            batch,
        );
        Ok(())
    }

    /// How long the pinned text is, and how it begins.
    async fn test_length(&self, _: HoverParams) -> Result<Option<(usize, String)>> {
        let Some(document) = pinned() else { return Ok(None) };
        let start = document.text.read(Span::new(0, 12)).unwrap_or_default().into_owned();
        Ok(Some((document.text.len_bytes(), start)))
    }
}

pub fn add(builder: LspServiceBuilder<Server>) -> LspServiceBuilder<Server> {
    builder
        .custom_method("test/panic", Server::test_panic)
        .custom_method("test/panicLater", Server::test_panic_later)
        .custom_method("test/stuck", Server::test_stuck)
        .custom_method("test/panicNotified", Server::test_panic_notified)
        .custom_method("test/stuckNotified", Server::test_stuck_notified)
        .custom_method("test/measure", Server::test_measure)
        .custom_method("test/failAnalysis", Server::test_fail_analysis)
        .custom_method("test/length", Server::test_length)
        .custom_method("test/pinned", Server::test_pinned)
}
