// Quick fixes, settings that change while the server runs, and a server that dies.
import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { codeOf, ended, extension, findings, job, open, ours, said, set, startOptimizing, textOf, until } from "../harness";
import type { Scenarios } from "../suite";

const FIXABLE = `__global__ void cube(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) /* 😀𝛑 */ y[i] = powf(x[i], 3.0f); /* 😀 */
}
`;

/** The process of the server, which the client keeps to itself. */
function processOf(): number | undefined {
  return (extension().client as unknown as { _serverProcess?: { pid: number } } | undefined)?._serverProcess?.pid;
}

/** Kills the server while something is said to it, and waits for another. */
async function kill(): Promise<void> {
  const before = await until("a process", processOf);
  const { client } = extension();
  process.kill(before, "SIGKILL");
  // Nothing of its end is noticed before it is written to, and that fails, several times.
  for (const end = Date.now() + 300; Date.now() < end;);
  for (let count = 0; count < 10; count += 1) {
    void client?.sendNotification("$/setTrace", { value: "off" }).catch(() => {});
  }
  await until("another process", () => {
    const now = processOf();
    return now !== undefined && now !== before && extension().client?.isRunning();
  });
}

export const editing: Scenarios = {
  "a quick fix is applied, beside signs beyond the BMP": async () => {
    const { document } = await open("cube.cu", FIXABLE);
    const [found] = await findings(document.uri, "static/pow-small-exponent");
    assert.ok(found);
    const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
      "vscode.executeCodeActionProvider",
      document.uri,
      found.range,
      vscode.CodeActionKind.QuickFix.value,
    );
    const fix = actions.find((action) => action.edit);
    assert.ok(fix?.edit, actions.map((action) => action.title).join(" | "));
    assert.ok(await vscode.workspace.applyEdit(fix.edit));
    assert.match(document.getText(), /\/\* 😀𝛑 \*\/ y\[i\] = x\[i\] \* x\[i\] \* x\[i\]; \/\* 😀 \*\//);
    await until("the finding to go", () => ours(document.uri).every((one) => codeOf(one) !== "static/pow-small-exponent"));
    await document.save();
    return fix.title;
  },

  "settings count at once": async () => {
    const { document } = await open("energy.cu");
    await findings(document.uri, "static/pow-small-exponent");
    await set("diagnostics.severity", { "static/pow-small-exponent": "warning" });
    await until("a warning", () => ours(document.uri).some((one) => one.severity === vscode.DiagnosticSeverity.Warning));
    await set("diagnostics.enable", false);
    await until("no findings", () => ours(document.uri).length === 0);
    await set("diagnostics.enable", undefined);
    await set("diagnostics.severity", { "static/item-in-loop": "information" });
    await findings(document.uri, "static/pow-small-exponent");
    const ask = (): Thenable<vscode.InlayHint[]> =>
      vscode.commands.executeCommand("vscode.executeInlayHintProvider", document.uri, new vscode.Range(0, 0, document.lineCount, 0));
    await set("inlayHints.enable", false);
    await until("no hints", async () => (await ask()).length === 0);
    await set("inlayHints.enable", undefined);
    await until("hints again", async () => (await ask()).length > 0);
  },

  "a server that is killed in the middle of a job starts again, and what it had is kept": async () => {
    const editor = await open("killed.cu", textOf("energy.cu"));
    const before = editor.document.getText();
    const id = await startOptimizing(editor, "__global__");
    const lost = await job("a run at work", (one) => one.id === id && one.run !== undefined && one.stage !== undefined);
    await kill();
    const kept = await until("its run", () =>
      extension()
        .jobs.earlier()
        .find((one) => one.run === lost.run),
    );
    assert.equal(kept.summary.finished, false);
    assert.equal(editor.document.getText(), before);
    await findings(editor.document.uri, "static/pow-small-exponent");
    const again = await ended(await startOptimizing(editor, "__global__"));
    assert.equal(again.decision, "open", JSON.stringify(again));
  },

  "jobs that a restart ends are told, and none looks as if it ran on": async () => {
    const editor = await open("restarted.cu", textOf("energy.cu"));
    const configuration = vscode.workspace.getConfiguration("stitchcuda");
    const before = configuration.inspect<string>("server.path")?.globalValue;
    const ways: Record<string, () => Thenable<unknown>> = {
      restart: () => vscode.commands.executeCommand("stitchcuda.restart"),
      "another key": () => vscode.commands.executeCommand("stitchcuda.setKey", "sk-another"),
      "a setting that names no server": () => configuration.update("server.path", "/nowhere/stitchcuda", vscode.ConfigurationTarget.Global),
    };
    try {
      for (const [way, end] of Object.entries(ways)) {
        await until("a server", () => extension().client?.isRunning());
        const id = await startOptimizing(editor, "__global__");
        const { title } = await job("the first stage", (one) => one.id === id && one.stage !== undefined);
        await said(async (messages) => {
          await end();
          await until(`what ${way} ends`, () => messages.some((text) => text.includes("ended, and with it") && text.includes(title)));
        });
        const running = extension()
          .jobs.list()
          .filter((one) => one.state === "running" || one.state === "queued");
        assert.deepEqual(running, [], way);
      }
    } finally {
      await configuration.update("server.path", before, vscode.ConfigurationTarget.Global);
      await vscode.commands.executeCommand("stitchcuda.removeKey");
    }
    await until("a server again", () => extension().client?.isRunning());
  },

  "a server that is killed starts again": async () => {
    const { document } = await open("energy.cu");
    await kill();
    await findings(document.uri, "static/pow-small-exponent");
    await vscode.commands.executeCommand("stitchcuda.restart");
    assert.ok(extension().client?.isRunning(), "and where a person asks for it");
    await findings(document.uri, "static/pow-small-exponent");
  },
};
