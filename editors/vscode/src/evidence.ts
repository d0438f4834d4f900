// Reports as pages. They hold no script, load nothing, and every text in them is shown as text: a model or a program wrote it.
import * as crypto from "node:crypto";
import * as vscode from "vscode";
import { page, verdictPage } from "./page";
import type { Job } from "./protocol";
import type { Report, Verdict } from "./report";

const panels = new Map<string, vscode.WebviewPanel>();

/** Shows a run's report beside the text. */
export function showEvidence(run: string, report: Report): vscode.WebviewPanel {
  const isPlan = !report.history.some((entry) => entry.entry === "attempt") && report.history.some((entry) => entry.entry === "plan");
  return show(`run ${run}`, `${isPlan ? "Plan" : "Evidence"}: ${report.manifest.target}`, (nonce) => page(report, nonce));
}

/** Shows the verdict of a job beside the text. */
export function showVerdict(job: Job, verdict: Verdict): vscode.WebviewPanel {
  return show(`job ${job.id}`, `Verdict: ${verdict.candidate}`, (nonce) => verdictPage(verdict, job.said ?? verdict.answer, nonce));
}

function show(key: string, title: string, html: (nonce: string) => string): vscode.WebviewPanel {
  let panel = panels.get(key);
  if (!panel) {
    panel = vscode.window.createWebviewPanel(
      "stitchcuda.evidence",
      title,
      { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
      { enableScripts: false, enableForms: false, enableCommandUris: false, localResourceRoots: [] },
    );
    panel.onDidDispose(() => panels.delete(key));
    panels.set(key, panel);
  }
  panel.title = title;
  panel.webview.html = html(crypto.randomBytes(16).toString("base64"));
  panel.reveal(undefined, true);
  return panel;
}
