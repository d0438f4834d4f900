// A run's report as a page. It holds no script, loads nothing, and every text in it is shown as text: a model or a program wrote it.
import * as crypto from "node:crypto";
import * as vscode from "vscode";
import { page } from "./page";
import type { Report } from "./report";

const panels = new Map<string, vscode.WebviewPanel>();

/** Shows a run's report beside the text. */
export function showEvidence(run: string, report: Report): vscode.WebviewPanel {
  let panel = panels.get(run);
  if (!panel) {
    panel = vscode.window.createWebviewPanel(
      "stitchcuda.evidence",
      `Evidence: ${report.manifest.target}`,
      { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
      { enableScripts: false, enableForms: false, enableCommandUris: false, localResourceRoots: [] },
    );
    panel.onDidDispose(() => panels.delete(run));
    panels.set(run, panel);
  }
  panel.webview.html = page(report, crypto.randomBytes(16).toString("base64"));
  panel.reveal(undefined, true);
  return panel;
}
