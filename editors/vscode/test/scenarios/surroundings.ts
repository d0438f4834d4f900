// What is around the work: commands, the doctor, pausing, where the server is found.
import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { extension, open, set, until } from "../harness";
import type { Scenarios } from "../suite";

export const surroundings: Scenarios = {
  "every command of the manifest exists, with a category and an icon": async () => {
    const manifest = vscode.extensions.getExtension("stitchcuda.stitchcuda")?.packageJSON as {
      contributes: { commands: { command: string; category?: string; icon?: string }[] };
    };
    const known = new Set(await vscode.commands.getCommands(true));
    for (const { command, category, icon } of manifest.contributes.commands) {
      assert.ok(known.has(command), command);
      assert.equal(category, "StitchCUDA", command);
      assert.match(icon ?? "", /^\$\(.+\)$/, command);
    }
    return `${manifest.contributes.commands.length} commands`;
  },

  "the doctor says what is here": async () => {
    await vscode.commands.executeCommand("stitchcuda.doctor");
    const page = vscode.window.activeTextEditor?.document.getText() ?? "";
    assert.match(page, /nvcc|CUDA/);
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
  },

  "compiling by itself can be paused": async () => {
    await open("energy.cu");
    await vscode.commands.executeCommand("stitchcuda.togglePause");
    await until("the pause", () => extension().status.last?.paused === true);
    await vscode.commands.executeCommand("stitchcuda.togglePause");
    await until("its end", () => extension().status.last?.paused === false);
    const { last } = extension().status;
    assert.match(last?.toolkit ?? "", /^CUDA /);
    assert.equal(last?.restricted, false);
  },

  "messages are traced where that is set, and only there": async () => {
    const { document } = await open("energy.cu");
    await set("trace.server", "messages");
    // The trace is a document like any other once it is shown.
    await vscode.commands.executeCommand("stitchcuda.showTrace");
    const traced = (): string =>
      vscode.workspace.textDocuments.find((one) => one.uri.scheme === "output" && one.uri.path.includes("Trace"))?.getText() ?? "";
    await until("a message in the trace", async () => {
      await vscode.commands.executeCommand("vscode.executeHoverProvider", document.uri, new vscode.Position(1, 20));
      return traced().includes("textDocument/hover");
    });
    assert.ok(!traced().includes("__global__"), "no text of a file, unless it is asked for");
    await set("trace.server", undefined);
    await vscode.commands.executeCommand("workbench.action.closePanel");
  },

  "a setting that names no server is said, and the next one counts": async () => {
    const configuration = vscode.workspace.getConfiguration("stitchcuda");
    const before = configuration.inspect<string>("server.path")?.globalValue;
    await configuration.update("server.path", "/nowhere/stitchcuda", vscode.ConfigurationTarget.Global);
    await until("no server", () => extension().client === undefined);
    const { status } = extension();
    const stale = (): string[] => [status.device.text, status.engine.text, status.background.text];
    await until("that it does not run", () => status.device.text === "StitchCUDA does not run");
    assert.deepEqual(stale(), ["StitchCUDA does not run", "Engine: not known yet", "Nothing is compiled"]);
    assert.equal(status.background.command?.command, "stitchcuda.restart");
    assert.equal(status.last, undefined);
    await configuration.update("server.path", before, vscode.ConfigurationTarget.Global);
    await until("a server again", () => extension().client?.isRunning());
    await until("what it says of itself", () => stale().join().includes("sim:h200"));
    assert.deepEqual([status.engine.text, status.background.text], ["Engine: builtin", "Compiles on save"]);
    assert.notEqual(status.device.severity, vscode.LanguageStatusSeverity.Error);
    assert.equal(status.device.command?.command, "stitchcuda.doctor");
  },
};
