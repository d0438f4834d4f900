// The language status: where kernels run, with what they are compiled, what plans, and whether that goes on by itself.
import * as vscode from "vscode";
import { SELECTOR } from "./client";
import type { Status } from "./protocol";

export class StatusItems implements vscode.Disposable {
  readonly device = vscode.languages.createLanguageStatusItem("stitchcuda.device", SELECTOR);
  readonly engine = vscode.languages.createLanguageStatusItem("stitchcuda.engine", SELECTOR);
  readonly background = vscode.languages.createLanguageStatusItem("stitchcuda.background", SELECTOR);
  last: Status | undefined;

  constructor() {
    this.device.name = "StitchCUDA: Device and Toolchain";
    this.engine.name = "StitchCUDA: Engine";
    this.background.name = "StitchCUDA: Compiling by Itself";
    this.engine.command = { command: "workbench.action.openSettings", title: "Settings", arguments: ["stitchcuda.optimize"] };
    this.starting();
  }

  starting(): void {
    this.unknown();
    this.device.text = "StitchCUDA";
    this.device.detail = "starting";
    this.device.busy = true;
    this.device.severity = vscode.LanguageStatusSeverity.Information;
    this.device.command = { command: "stitchcuda.showLog", title: "Log" };
  }

  /** Nothing is known of a server that does not answer; what the last one said holds no more. */
  private unknown(): void {
    this.last = undefined;
    this.engine.text = "Engine: not known yet";
    this.engine.severity = vscode.LanguageStatusSeverity.Information;
    this.background.text = "Nothing is compiled";
    this.background.detail = "The server does not run.";
    this.background.command = { command: "stitchcuda.restart", title: "Restart" };
  }

  /** There is no server. */
  stopped(why: string): void {
    this.unknown();
    this.device.busy = false;
    this.device.severity = vscode.LanguageStatusSeverity.Error;
    this.device.text = "StitchCUDA does not run";
    this.device.detail = why;
    this.device.command = { command: "stitchcuda.restart", title: "Restart" };
  }

  show(status: Status): void {
    this.last = status;
    const severity = vscode.LanguageStatusSeverity;
    this.device.busy = status.busy;
    this.device.text = status.device ?? "StitchCUDA";
    this.device.detail = [status.toolkit, status.architecture, status.message].filter(Boolean).join(" · ");
    this.device.severity = status.health === "warning" ? severity.Warning : severity.Information;
    this.device.command =
      status.health === "warning"
        ? { command: "stitchcuda.doctor", title: "What to Do" }
        : { command: "stitchcuda.doctor", title: "Doctor" };
    this.engine.text = `Engine: ${status.engine ?? "not known yet"}`;
    this.engine.severity = status.engine?.startsWith("none: ") ? severity.Warning : severity.Information;
    if (status.restricted) {
      this.background.text = "Restricted: static findings only";
      this.background.detail = "The workspace is not trusted, so nothing is compiled or run.";
      this.background.command = { command: "workbench.trust.manage", title: "Manage Trust" };
    } else {
      this.background.text = status.paused ? "Paused" : "Compiles on save";
      this.background.detail = "";
      this.background.command = { command: "stitchcuda.togglePause", title: status.paused ? "Resume" : "Pause" };
    }
  }

  dispose(): void {
    [this.device, this.engine, this.background].forEach((item) => item.dispose());
  }
}
