// What is around the work: commands, the doctor, pausing, where the server is found.
import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { extension, job, open, said, set, until } from "../harness";
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

  "the doctor says what is here, on a page that nobody has to save": async () => {
    await vscode.commands.executeCommand("stitchcuda.doctor");
    const page = vscode.window.activeTextEditor?.document;
    assert.match(page?.getText() ?? "", /nvcc|CUDA/);
    assert.deepEqual([page?.isUntitled, page?.isDirty, page?.languageId], [false, false, "plaintext"]);
    await vscode.commands.executeCommand("stitchcuda.debugInformation");
    assert.match(vscode.window.activeTextEditor?.document.getText() ?? "", /^# StitchCUDA/);
    assert.deepEqual(
      vscode.workspace.textDocuments.filter((one) => one.isDirty).map((one) => String(one.uri)),
      [],
    );
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
  },

  "a command about what the server has not says so, and why": async () => {
    const { document } = await open("energy.cu");
    const asks = ["stitchcuda.optimizeSelection", "stitchcuda.planSelection", "stitchcuda.verifyFile", "stitchcuda.profileFile"];
    const version = document.uri.with({ scheme: "version-of-before" });
    const provider = vscode.workspace.registerTextDocumentContentProvider("version-of-before", {
      provideTextDocumentContent: () => document.getText(),
    });
    try {
      const shown: [() => Thenable<vscode.TextDocument>, RegExp, string[]][] = [
        [() => vscode.workspace.openTextDocument(version), /not a file itself \(`version-of-before:`\)/, asks],
        [() => vscode.workspace.openTextDocument({ language: "python", content: "import torch\n" }), /Save the file first/, asks],
        [() => vscode.workspace.openTextDocument({ language: "markdown" }), /Open a CUDA or Python file first; .*`markdown`/, asks],
        [
          () => vscode.workspace.openTextDocument({ language: "cuda-cpp", content: "__global__ void k() {}\n" }),
          /Save the file first/,
          [...asks, "stitchcuda.compileFile"],
        ],
      ];
      for (const [make, expected, commands] of shown) {
        await vscode.window.showTextDocument(await make());
        for (const command of commands) {
          const [text, ...more] = await said(() => vscode.commands.executeCommand(command));
          assert.match(text ?? "", expected, command);
          assert.deepEqual(more, [], command);
        }
        await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
      }
      // And what the server itself finds wrong with a command is not swallowed.
      const [text] = await said(() => vscode.commands.executeCommand("stitchcuda.recompile", "file:///nowhere.cu"));
      assert.match(text ?? "", /`stitchcuda.recompile` takes the URI of an open CUDA or Python file/);
    } finally {
      provider.dispose();
    }
  },

  "a command that finds nothing to do says so": async () => {
    await open("energy.cu");
    await vscode.commands.executeCommand("stitchcuda.profileFile");
    const over = await job("the end of the profile", (one) => one.kind === "profile" && one.state === "done");
    await vscode.commands.executeCommand("stitchcuda.toggleHeat");
    await open("plain.cu", "int main() { return 0; }\n");
    const rows: [string, unknown[], RegExp][] = [
      ["stitchcuda.cancelJob", [], /^No job runs\.$/],
      ["stitchcuda.cancelJob", [over], /had ended already\.$/],
      ["stitchcuda.removeKey", [], /^There is no key to remove\.$/],
      ["stitchcuda.toggleHeat", [], /^Heat is on, but no line that is shown has numbers of this kind\./],
    ];
    for (const [command, given, expected] of rows) {
      const messages = await said(() => vscode.commands.executeCommand(command, ...given));
      assert.equal(messages.length, 1, `${command}: ${messages.join(" | ")}`);
      assert.match(messages[0] ?? "", expected);
    }
    await vscode.commands.executeCommand("stitchcuda.toggleHeat");
  },

  "menus offer commands for files only that the server has": () => {
    const manifest = vscode.extensions.getExtension("stitchcuda.stitchcuda")?.packageJSON as {
      contributes: { menus: Record<string, { command: string; when?: string }[]> };
    };
    const about = Object.values(manifest.contributes.menus)
      .flat()
      .filter((item) => item.when?.includes("editorLangId"));
    assert.ok(about.length > 0);
    // The editor itself puts the scheme of a remote window in place of `file`.
    for (const { command, when } of about) {
      assert.match(when ?? "", /resourceScheme == '?(file|vscode-remote)/, `${command}: ${when}`);
      assert.doesNotMatch(when ?? "", /untitled/, command);
    }
    return Promise.resolve();
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
    const { uri } = (await open("energy.cu")).document;
    const hot = (): number => extension().heat.shown.get(uri.toString())?.length ?? 0;
    await vscode.commands.executeCommand("stitchcuda.toggleHeat");
    await until("heat", () => hot() > 0);
    await configuration.update("server.path", "/nowhere/stitchcuda", vscode.ConfigurationTarget.Global);
    await until("no server", () => extension().client === undefined);
    const { status } = extension();
    const stale = (): string[] => [status.device.text, status.engine.text, status.background.text];
    await until("that it does not run", () => status.device.text === "StitchCUDA does not run");
    assert.deepEqual(stale(), ["StitchCUDA does not run", "Engine: not known yet", "Nothing is compiled"]);
    assert.equal(status.background.command?.command, "stitchcuda.restart");
    assert.equal(status.last, undefined);
    // Heat goes with the server that knew of it, and who asks for it is told when it comes.
    await until("no heat", () => hot() === 0);
    await vscode.commands.executeCommand("stitchcuda.toggleHeat");
    const [told] = await said(() => vscode.commands.executeCommand("stitchcuda.toggleHeat"));
    assert.match(told ?? "", /Heat is on, and is shown as soon as the StitchCUDA server runs/);
    await configuration.update("server.path", before, vscode.ConfigurationTarget.Global);
    await until("a server again", () => extension().client?.isRunning());
    await until("heat again", () => hot() > 0);
    await vscode.commands.executeCommand("stitchcuda.toggleHeat");
    await until("what it says of itself", () => stale().join().includes("sim:h200"));
    assert.deepEqual([status.engine.text, status.background.text], ["Engine: builtin", "Compiles on save"]);
    assert.notEqual(status.device.severity, vscode.LanguageStatusSeverity.Error);
    assert.equal(status.device.command?.command, "stitchcuda.doctor");
  },
};
