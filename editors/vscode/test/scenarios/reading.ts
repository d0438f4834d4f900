// What a person sees who opens a file: squiggles, hints, hovers, lenses, heat.
import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { extension, findings, job, open, ours, until } from "../harness";
import type { Scenarios } from "../suite";

const whole = (document: vscode.TextDocument): vscode.Range => new vscode.Range(0, 0, document.lineCount, 0);

const labelOf = ({ label }: vscode.InlayHint): string => (typeof label === "string" ? label : label.map((part) => part.value).join(""));

/** The hint with a kernel's registers, once it is there. */
function registers(document: vscode.TextDocument): Promise<vscode.InlayHint> {
  return until("a hint with registers", async () => {
    const hints = await vscode.commands.executeCommand<vscode.InlayHint[] | undefined>(
      "vscode.executeInlayHintProvider",
      document.uri,
      whole(document),
    );
    return hints?.find((hint) => labelOf(hint).includes("registers"));
  });
}

/** What is said over a text. */
async function hover(document: vscode.TextDocument, text: string): Promise<string> {
  const at = document.positionAt(document.getText().indexOf(text));
  const hovers = await vscode.commands.executeCommand<vscode.Hover[]>("vscode.executeHoverProvider", document.uri, at);
  return hovers.flatMap(({ contents }) => contents.map((part) => (part instanceof vscode.MarkdownString ? part.value : ""))).join("\n");
}

async function lenses(document: vscode.TextDocument): Promise<string[]> {
  const found = await vscode.commands.executeCommand<vscode.CodeLens[]>("vscode.executeCodeLensProvider", document.uri, 10);
  return found.map((lens) => lens.command?.title ?? "");
}

/** CUDA in a string of Python. */
const RAW = `import cupy

energy = cupy.RawKernel(r"""
extern "C" __global__ void energy(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) /* 😀 */ y[i] = powf(x[i], 3.0f);
}
""", "energy")
`;

export const reading: Scenarios = {
  "a .cu file has squiggles, hints, a hover and lenses": async () => {
    const { document } = await open("energy.cu");
    assert.equal(document.languageId, "cuda-cpp");
    const [found] = await findings(document.uri, "static/pow-small-exponent");
    assert.ok(found && document.getText(found.range).includes("powf"), "the squiggle is under the call");
    assert.equal(found.severity, vscode.DiagnosticSeverity.Information);

    const hints = await registers(document);
    assert.equal(hints.position.line, 1, "at the end of the kernel's line");
    assert.equal(hints.position.character, document.lineAt(1).text.length);

    assert.match(await hover(document, "energy(float"), /registers/);
    const titles = await lenses(document);
    assert.ok(
      titles.some((title) => title.includes("registers") && title.includes("1 launch")),
      titles.join(" | "),
    );
    assert.ok(titles.includes("Optimize"), titles.join(" | "));
    return labelOf(hints);
  },

  "a .py file has squiggles, hints, a hover and lenses": async () => {
    const { document } = await open("model.py");
    assert.equal(document.languageId, "python");
    const [found] = await findings(document.uri, "static/item-in-loop");
    assert.match(document.getText(found?.range), /item/);
    const kernel = await open("raw.py", RAW);
    await findings(kernel.document.uri, "static/pow-small-exponent");
    const hint = await registers(kernel.document);
    assert.match(kernel.document.lineAt(hint.position.line).text, /__global__ void energy/);
    assert.match(await hover(kernel.document, "energy(float"), /registers/);
    const titles = await lenses(kernel.document);
    assert.ok(
      titles.some((title) => title.includes("registers")),
      titles.join(" | "),
    );
    return `${labelOf(hint)}; ${titles.join(" | ")}`;
  },

  "columns are right beyond the BMP": async () => {
    const { document } = await open("beyond.cu");
    const [found] = await findings(document.uri, "static/pow-small-exponent");
    assert.ok(found);
    assert.equal(document.getText(found.range), "powf(x[i], 2.0f)");
  },

  "heat is drawn where it is turned on, and goes with an edit": async () => {
    const editor = await open("energy.cu");
    const { heat } = extension();
    const shown = (): number => heat.shown.get(editor.document.uri.toString())?.length ?? 0;
    await vscode.commands.executeCommand("stitchcuda.toggleHeat");
    await until("numbers", () => shown() > 0);
    await editor.edit((edit) => edit.insert(new vscode.Position(2, 2), "int j = 0; "));
    await until("no numbers of code that changed", () => shown() === 0);
    await vscode.commands.executeCommand("undo");
    await vscode.commands.executeCommand("stitchcuda.toggleHeat");
    await until("no numbers where it is off", () => shown() === 0);
    await vscode.commands.executeCommand("workbench.action.files.revert");
  },

  "a profile heats the lines that move most": async () => {
    const { document } = await open("energy.cu");
    await vscode.commands.executeCommand("stitchcuda.profileFile");
    const done = await job("the end of the profile", (one) => one.kind === "profile" && one.state !== "running");
    assert.equal(done.state, "done", JSON.stringify(done));
    const hottest = await until("its heat", () =>
      extension()
        .heat.shown.get(document.uri.toString())
        ?.find((number) => number.quantity === "traffic" && number.heat === 1),
    );
    assert.equal(hottest.line, 3);
    await vscode.commands.executeCommand("stitchcuda.toggleHeat");
    return hottest.label;
  },

  "no channel and no document comes up by itself": () => {
    const odd = vscode.window.visibleTextEditors.map((editor) => editor.document.uri).filter((uri) => uri.scheme !== "file");
    assert.deepEqual(odd.map(String), []);
    assert.ok(ours(vscode.Uri.file("/")).length === 0);
    return Promise.resolve();
  },
};
