// From a selection to an accepted edit, and every way in which it must not come to one.
import * as assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { codeOf, Endpoint, ended, extension, job, open, ours, said, set, startOptimizing, textOf, until } from "../harness";
import type { Scenarios } from "../suite";

const SECRET = "sk-in-the-secret-store";

/** Compiles a file as a person would. */
function compile(file: string): void {
  const nvcc = path.join(process.env.CUDA_HOME ?? "", "bin", "nvcc");
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

function webviews(): vscode.Tab[] {
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter((tab) => tab.input instanceof vscode.TabInputWebview);
}

function select(editor: vscode.TextEditor, text: string): void {
  const at = editor.document.positionAt(editor.document.getText().indexOf(text));
  editor.selection = new vscode.Selection(at, at.translate(0, 3));
}

async function replaceAll(editor: vscode.TextEditor, text: string): Promise<void> {
  const { document } = editor;
  assert.ok(await editor.edit((edit) => edit.replace(new vscode.Range(0, 0, document.lineCount, 0), text)));
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

  "a candidate is rejected, and nothing is changed": async () => {
    const editor = await open("rejected.cu", textOf("energy.cu"));
    const before = editor.document.getText();
    const id = await startOptimizing(editor, "__global__");
    const done = await ended(id);
    assert.equal(done.decision, "open", JSON.stringify(done));
    await vscode.commands.executeCommand("stitchcuda.reviewCandidate", done);
    const diff = await until("the difference", shownDiff);
    // As the button in its title does it: about the difference that is shown.
    await vscode.commands.executeCommand("stitchcuda.rejectCandidate", diff.modified);
    await until("the decision", () => extension().jobs.get(id)?.decision === "rejected");
    assert.equal(shownDiff(), undefined, "the difference is closed");
    assert.equal(editor.document.getText(), before);
    assert.equal(editor.document.isDirty, false);
  },

  "the evidence is a page without scripts": async () => {
    const done = await job("a job with a run", (one) => one.run !== undefined);
    await vscode.commands.executeCommand("stitchcuda.showEvidence", done);
    await until("the page", () =>
      vscode.window.tabGroups.all.flatMap((group) => group.tabs).find((tab) => tab.input instanceof vscode.TabInputWebview),
    );
    await vscode.commands.executeCommand("workbench.action.closeEditorsInOtherGroups");
  },

  "a model behind an endpoint is given the key of the secret store, and nobody else is": async () => {
    const endpoint = await Endpoint.start(path.join(process.env.STITCHCUDA_TEST_LLM ?? "", "energy.json"));
    try {
      await vscode.commands.executeCommand("stitchcuda.setKey", SECRET);
      await set("optimize.engine", "llm");
      await set("model.endpoint", endpoint.base);
      await set("model.name", "scripted");
      await until("the engine", () => extension().status.last?.engine === "llm (scripted)");
      const editor = await open("modelled.cu", textOf("energy.cu"));
      const id = await startOptimizing(editor, "__global__");
      const candidate = await acceptAndSave(id, editor);
      assert.match(candidate, /y\[i\] = v \* v \* v; } {2}\/\/ π/);
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
    const endpoint = await Endpoint.start(path.join(process.env.STITCHCUDA_TEST_LLM ?? "", "model.json"));
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

  "a plan is shown and kept, and nothing is tried of it": async () => {
    const editor = await open("planned.cu", textOf("energy.cu"));
    const before = editor.document.getText();
    select(editor, "__global__");
    await vscode.commands.executeCommand("stitchcuda.planSelection");
    const done = await job("the end of the plan", (one) => one.kind === "plan" && one.state === "done");
    assert.match(done.said ?? "", /^The plan has .* nothing was attempted: 1\. /);
    await vscode.commands.executeCommand("stitchcuda.showEvidence", done);
    await until("its page", () => webviews().find((tab) => tab.label === "Plan: planned.cu"));
    await vscode.commands.executeCommand("workbench.action.closeEditorsInOtherGroups");
    assert.equal(editor.document.getText(), before);
    return done.said ?? "";
  },

  "the text of now is verified against what was saved, right or wrong": async () => {
    const editor = await open("verified.cu", textOf("energy.cu"));
    for (const [power, answer] of [
      ["x[i] * x[i] * x[i]", "correct"],
      ["x[i] * x[i]", "wrong"],
    ] as const) {
      await replaceAll(editor, textOf("verified.cu").replace("powf(x[i], 3.0f)", power));
      await vscode.commands.executeCommand("stitchcuda.verifyFile", { reference: "saved" });
      const done = await job(answer, (one) => one.kind === "verify" && one.answer === answer);
      await vscode.commands.executeCommand("stitchcuda.showVerdict", done);
      await until("its page", () => webviews().find((tab) => tab.label.startsWith("Verdict: verified.cu")));
    }
    await vscode.commands.executeCommand("workbench.action.closeEditorsInOtherGroups");
    await vscode.window.showTextDocument(editor.document);
    await vscode.commands.executeCommand("workbench.action.files.revert");
  },

  "a class of a .py file is verified against what was saved": async () => {
    const editor = await open("module.py", textOf("model.py"));
    await set("device", "cpu");
    try {
      select(editor, "class Scale");
      await replaceAll(editor, `# the same\n${editor.document.getText()}`);
      await vscode.commands.executeCommand("stitchcuda.verifyFile", { reference: "saved" });
      const done = await job("the verdict", (one) => one.title === "Verify module.py" && one.state !== "running" && one.state !== "queued");
      assert.equal(done.answer, "correct", JSON.stringify(done));
      await vscode.commands.executeCommand("workbench.action.files.revert");
      return done.said ?? "";
    } finally {
      await set("device", undefined);
    }
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
    // Undone, and accepted once more, it is made once more, and at once.
    await vscode.commands.executeCommand("undo");
    await vscode.commands.executeCommand("stitchcuda.reviewCandidate", extension().jobs.get(id));
    await until("the difference", shownDiff);
    assert.equal(await vscode.commands.executeCommand("stitchcuda.acceptCandidate", extension().jobs.get(id)), true);
    assert.equal(shownDiff(), undefined, "the difference is closed");
    assert.match(editor.document.getText(), /x\[i\] \* x\[i\] \* x\[i\]/);
    await editor.document.save();
  },

  "the walkthrough's step optimises the file that was shown before it": async () => {
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    const editor = await open("walked.cu", textOf("energy.cu"));
    select(editor, "__global__");
    await vscode.commands.executeCommand("stitchcuda.walkthrough");
    await until("the walkthrough", () => vscode.window.activeTextEditor === undefined);
    assert.deepEqual(await said(() => vscode.commands.executeCommand("stitchcuda.optimizeSelection")), []);
    const started = await job("its job", (one) => one.kind === "optimize" && (one.uri ?? "").endsWith("walked.cu"));
    await vscode.commands.executeCommand("stitchcuda.cancelJob", started);
    await ended(started.id);
  },

  "runs of before are listed when the server starts again": async () => {
    const { jobs } = extension();
    const made = jobs.list().flatMap((one) => (one.run ? [one.run] : []));
    const before = jobs.earlier().map((one) => one.run);
    assert.ok(made.length > 0 && !made.some((run) => before.includes(run)), "each is listed once");
    await vscode.commands.executeCommand("stitchcuda.restart");
    const listed = await until("the runs", () => (jobs.earlier().length > before.length ? jobs.earlier() : undefined));
    assert.deepEqual(listed.map((one) => one.run).sort(), [...made, ...before].sort());
    assert.equal(extension().jobs.list().length, 0);
    const kept = listed.find((one) => one.summary.gain);
    assert.ok(kept, "one of them found something better");
    await vscode.commands.executeCommand("stitchcuda.reviewCandidate", kept);
    const { original, modified } = await until("the difference", shownDiff);
    // As in a window that is loaded again, where nothing is known of it yet.
    (extension().reviews as unknown as { shown: Map<string, unknown> }).shown.clear();
    const again = [original, modified].map((uri) => textAt(uri.with({ path: `${uri.path}.again` })));
    assert.deepEqual(await Promise.all(again), [await textAt(original), await textAt(modified)]);
    assert.notEqual(await again[0], "");
    // A candidate that is shown does not choose the run whose report is opened.
    const window = vscode.window as unknown as { showQuickPick: (items: unknown[], options: { title: string }) => unknown };
    const { showQuickPick } = window;
    const asked: string[] = [];
    window.showQuickPick = (_, { title }) => asked.push(title) && undefined;
    try {
      await vscode.commands.executeCommand("stitchcuda.openRun");
    } finally {
      window.showQuickPick = showQuickPick;
    }
    assert.deepEqual(asked, ["Which Run?"]);
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
    return `${listed.length} runs`;
  },
};
