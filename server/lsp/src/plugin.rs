//! The methods of `editors/PROTOCOL.md`, which plugins of ours ask for and plain clients never see.

use serde_json::Value;
use tower_lsp::jsonrpc::Result;

use crate::handlers::{doctor, heat, jobs, runs, state};
use crate::ingress::pinned;
use crate::server::Server;

impl Server {
    /// `stitchcuda/jobs`.
    pub async fn plugin_jobs(&self, _: Value) -> Result<Value> {
        jobs::list(&self.session)
    }

    /// `stitchcuda/cancel`.
    pub async fn plugin_cancel(&self, params: Value) -> Result<Value> {
        jobs::cancel(&self.session, &params)
    }

    /// `stitchcuda/verdict`.
    pub async fn plugin_verdict(&self, params: Value) -> Result<Value> {
        jobs::verdict(&self.session, &params)
    }

    /// `stitchcuda/runs`.
    pub async fn plugin_runs(&self, _: Value) -> Result<Value> {
        runs::list().await
    }

    /// `stitchcuda/run`.
    pub async fn plugin_run(&self, params: runs::RunParams) -> Result<Value> {
        runs::report(params).await
    }

    /// `stitchcuda/candidate`.
    pub async fn plugin_candidate(&self, params: runs::RunParams) -> Result<Value> {
        runs::candidate(&self.session, params).await
    }

    /// `stitchcuda/accept`.
    pub async fn plugin_accept(&self, params: runs::RunParams) -> Result<Value> {
        runs::accept(&self.session, params).await
    }

    /// `stitchcuda/reject`.
    pub async fn plugin_reject(&self, params: runs::RunParams) -> Result<Value> {
        Ok(runs::reject(&self.session, &params))
    }

    /// `stitchcuda/status`.
    pub async fn plugin_status(&self, _: Value) -> Result<Value> {
        state::status(&self.session)
    }

    /// `stitchcuda/pause`.
    pub async fn plugin_pause(&self, params: Value) -> Result<Value> {
        state::pause(&self.session, &params)
    }

    /// `stitchcuda/heat`.
    pub async fn plugin_heat(&self, _: Value) -> Result<Value> {
        match pinned() {
            Some(document) => heat::heat(&self.session, &self.session.view(document).await),
            None => Err(heat::not_open()),
        }
    }

    /// `stitchcuda/doctor`.
    pub async fn plugin_doctor(&self, _: Value) -> Result<Value> {
        doctor::doctor(&self.session).await
    }
}
