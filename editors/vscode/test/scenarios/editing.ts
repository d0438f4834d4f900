// Quick fixes, settings that change while the server runs, and a server that dies.
import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { codeOf, extension, findings, open, ours, set, until } from "../harness";
import type { Scenarios } from "../suite";

const FIXABLE = `__global__ void cube(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) /* 😀𝛑 */ y[i] = powf(x[i], 3.0f); /* 😀 */
}
`;

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

  "a server that is killed starts again": async () => {
    const { document } = await open("energy.cu");
    const processOf = (): number | undefined => (extension().client as unknown as { _serverProcess?: { pid: number } })._serverProcess?.pid;
    const before = await until("a process", processOf);
    process.kill(before, "SIGKILL");
    await until("another process", () => {
      const now = processOf();
      return now !== undefined && now !== before && extension().client?.isRunning();
    });
    await findings(document.uri, "static/pow-small-exponent");
    await vscode.commands.executeCommand("stitchcuda.restart");
    assert.ok(extension().client?.isRunning(), "and where a person asks for it");
    await findings(document.uri, "static/pow-small-exponent");
  },
};
