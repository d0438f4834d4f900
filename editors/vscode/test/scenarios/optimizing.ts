// From a selection to an accepted edit, and every way in which it must not come to one.
import * as assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { codeOf, Endpoint, ended, extension, job, open, ours, set, startOptimizing, textOf, until } from "../harness";
import type { Scenarios } from "../suite";

const SECRET = "sk-in-the-secret-store";

/** Compiles a file as a person would. */
function compile(file: string): void {
  const nvcc = path.join(process.env["CUDA_HOME"] ?? "", "bin", "nvcc");
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "stitchcuda-"));
  try {
    execFileSync(nvcc, ["-c", file, "-o", path.join(scratch, "out.o")], { stdio: "pipe" });
  } finally {
    fs.rmSync(scratch, { recursive: true });
  }
}

/** The difference that is shown. */
function shownDiff(): vscode.TabInputTextDiff | undefined {
  const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
  return input instanceof vscode.TabInputTextDiff ? input : undefined;
}

async function textAt(uri: vscode.Uri): Promise<string> {
  return (await vscode.workspace.openTextDocument(uri)).getText();
}

/** Takes a job's candidate through the review to the saved file. */
async function acceptAndSave(id: number, editor: vscode.TextEditor): Promise<string> {
  const done = await ended(id);
  assert.equal(done.state, "done", JSON.stringify(done));
  assert.ok(done.run && done.attempt && (done.speedup ?? 0) > 1, JSON.stringify(done));
  const before = editor.document.getText();
  await vscode.commands.executeCommand("stitchcuda.reviewCandidate", done);
  const diff = await until("the difference", shownDiff);
  assert.equal(await textAt(diff.original), before);
  const candidate = await textAt(diff.modified);
  assert.notEqual(candidate, before);
  assert.equal(editor.document.getText(), before, "nothing changes before it is accepted");
  assert.equal(await vscode.commands.executeCommand("stitchcuda.acceptCandidate", diff.modified), true);
  assert.equal(editor.document.getText(), candidate);
  assert.equal(extension().jobs.get(id)?.decision, "accepted");
  assert.equal(shownDiff(), undefined, "the difference is closed");
  assert.ok(await editor.document.save());
  return candidate;
}

export const optimizing: Scenarios = {
  "a selection is optimised, reviewed, accepted, saved, and compiles": async () => {
    const text = textOf("energy.cu");
    const editor = await open("optimized.cu", text);
    const id = await startOptimizing(editor, "__global__");
    await acceptAndSave(id, editor);
    assert.match(textOf("optimized.cu"), /x\[i\] \* x\[i\] \* x\[i\];\s+\/\/ π/);
    compile(editor.document.uri.fsPath);
    await until("the compiler's word", () => ours(editor.document.uri).every((one) => !codeOf(one).startsWith("nvcc/")));
    return extension().jobs.get(id)?.said ?? "";
  },

  "the evidence is a page without scripts": async () => {
    const done = await job("a job with a run", (one) => one.run !== undefined);
    await vscode.commands.executeCommand("stitchcuda.showEvidence", done);
    await until("the page", () =>
      vscode.window.tabGroups.all.flatMap((group) => group.tabs).find((tab) => tab.input instanceof vscode.TabInputWebview));
    await vscode.commands.executeCommand("workbench.action.closeEditorsInOtherGroups");
  },

  "a model behind an endpoint is given the key of the secret store, and nobody else is": async () => {
    const endpoint = await Endpoint.start(path.join(process.env["STITCHCUDA_TEST_LLM"] ?? "", "energy.json"));
    try {
      await vscode.commands.executeCommand("stitchcuda.setKey", SECRET);
      await set("optimize.engine", "llm");
      await set("model.endpoint", endpoint.base);
      await set("model.name", "scripted");
      await until("the engine", () => extension().status.last?.engine === "llm (scripted)");
      const editor = await open("modelled.cu", textOf("energy.cu"));
      const id = await startOptimizing(editor, "__global__");
      const candidate = await acceptAndSave(id, editor);
      assert.match(candidate, /y\[i\] = v \* v \* v; }  \/\/ π/);
      compile(editor.document.uri.fsPath);
      assert.equal(endpoint.questions[0]?.authorization, `Bearer ${SECRET}`);
      await vscode.commands.executeCommand("stitchcuda.debugInformation");
      const information = vscode.window.activeTextEditor?.document.getText() ?? "";
      assert.match(information, /key in the secret store: yes/);
      assert.ok(!information.includes(SECRET));
      const settings = textOf(".vscode/settings.json");
      assert.ok(!settings.includes(SECRET));
    } finally {
      endpoint.stop();
      await vscode.commands.executeCommand("stitchcuda.removeKey");
      await set("optimize.engine", undefined);
      await set("model.endpoint", undefined);
      await set("model.name", undefined);
      await until("the engine without a model", () => extension().status.last?.engine === "builtin");
    }
  },

  "a class of a .py file keeps its name and its signature": async () => {
    const editor = await open("model.py");
    const endpoint = await Endpoint.start(path.join(process.env["STITCHCUDA_TEST_LLM"] ?? "", "model.json"));
    try {
      await set("optimize.engine", "llm");
      await set("model.endpoint", endpoint.base);
      await set("model.name", "scripted");
      await set("device", "cpu");
      const id = await startOptimizing(editor, "class Scale");
      const candidate = await acceptAndSave(id, editor);
      assert.match(candidate, /class Scale\(torch\.nn\.Module\):/);
      assert.match(candidate, /def forward\(self, x: torch\.Tensor\) -> torch\.Tensor:/);
      assert.match(candidate, /mul_\(x\)/);
    } finally {
      endpoint.stop();
      for (const name of ["optimize.engine", "model.endpoint", "model.name", "device"]) {
        await set(name, undefined);
      }
    }
    return "accepted";
  },

  "a job is cancelled in the middle": async () => {
    const editor = await open("cancelled.cu", textOf("energy.cu"));
    const before = editor.document.getText();
    const id = await startOptimizing(editor, "__global__");
    const running = await job("the first stage", (one) => one.id === id && one.stage !== undefined);
    assert.equal(await vscode.commands.executeCommand("stitchcuda.cancelJob", running), true);
    const end = await ended(id);
    assert.equal(end.state, "cancelled");
    assert.equal(editor.document.getText(), before);
  },

  "no edit is made over a text that changed": async () => {
    const editor = await open("changed.cu", textOf("energy.cu"));
    const id = await startOptimizing(editor, "__global__");
    await job("the first stage", (one) => one.id === id && one.stage !== undefined);
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), "// mine 😀\n"));
    const mine = editor.document.getText();
    const done = await ended(id);
    assert.equal(done.decision, "open", JSON.stringify(done));
    assert.equal(await vscode.commands.executeCommand("stitchcuda.acceptCandidate", done), false);
    assert.equal(editor.document.getText(), mine);
    assert.equal(extension().jobs.get(id)?.decision, "open");
    // With the edit taken back, it is the same text again.
    await vscode.window.showTextDocument(editor.document);
    await vscode.commands.executeCommand("undo");
    assert.equal(await vscode.commands.executeCommand("stitchcuda.acceptCandidate", extension().jobs.get(id)), true);
    assert.match(editor.document.getText(), /x\[i\] \* x\[i\] \* x\[i\]/);
    await editor.document.save();
  },
};
