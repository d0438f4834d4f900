// Side by side with other servers on the same files: clangd on CUDA, Pyright (the part of Pylance that finds errors) on Python.
import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as vscode from "vscode";
import { LanguageClient, RevealOutputChannelOn } from "vscode-languageclient/node";
import { findings, open, ours, skipped, until } from "../harness";
import type { Scenarios } from "../suite";

function other(name: string, language: string, command: string, args: string[]): LanguageClient {
  return new LanguageClient(
    name,
    name,
    { command, args },
    {
      documentSelector: [{ scheme: "file", language }],
      diagnosticCollectionName: name,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
    },
  );
}

/** Nothing is said twice of a file. */
function assertNoneTwice(uri: vscode.Uri): void {
  const all = vscode.languages.getDiagnostics(uri);
  const said = all.map(
    (found) => `${found.source} ${found.range.start.line}:${found.range.start.character} ${found.message.split("\n", 1)[0]}`,
  );
  assert.deepEqual(said, [...new Set(said)]);
  const errors = all.filter((found) => found.severity === vscode.DiagnosticSeverity.Error);
  const names = errors.map((found) => /\w*_name\b/.exec(found.message)?.[0]).filter(Boolean);
  assert.deepEqual(names, [...new Set(names)], said.join("\n"));
}

interface Case {
  name: string;
  text: string;
  edited: string;
  /** One of ours that stays. */
  code: string;
  /** An error and a warning of ours that the other server finds as well: words of their messages. */
  common?: string[];
  /** One that it does not, on a line where it finds another. */
  own?: string;
}

async function sideBySide(client: LanguageClient, { name, text, edited, code, common, own }: Case): Promise<string> {
  try {
    const editor = await open(name, text);
    const { uri } = editor.document;
    const others = (): vscode.Diagnostic[] => vscode.languages.getDiagnostics(uri).filter((found) => found.source !== "stitchcuda");
    const about = (name?: string): number => ours(uri).filter((found) => name && found.message.includes(name)).length;
    const commons = (): number => (common ?? []).reduce((count, words) => count + about(words), 0);
    await findings(uri, code);
    await until("what we know alone", () => (common ?? []).every((words) => about(words) > 0));
    const alone = ours(uri).length;
    const doubled = commons();
    await client.start();
    const theirs = await until("the other server's diagnostics", () => others().length > 0 && others().length);
    await until("what both find to be there once", () => commons() === 0);
    assertNoneTwice(uri);
    if (own) {
      const [lone] = ours(uri).filter((found) => found.message.includes(own));
      assert.ok(lone, `an error that only we have is not shown: ${own}`);
      assert.ok(
        others().some((found) => found.range.start.line === lone.range.start.line),
        "the other server has one on its line",
      );
    }
    // Both see an edit, and neither takes the other's away.
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), edited));
    await until("both after an edit", () => ours(uri).length === alone - doubled && others().length === theirs);
    assertNoneTwice(uri);
    await editor.document.save();
    await client.stop();
    await until("the other server's to go", () => others().length === 0);
    await until("all of ours when the other server has ended", () => ours(uri).length === alone && commons() === doubled);
    return `${alone} of ours, ${theirs} of the other's, ${doubled} of both`;
  } finally {
    await client.dispose().catch(() => {});
  }
}

export const beside: Scenarios = {
  "clangd and we, on one .cu file": async () => {
    const clangd = process.env.STITCHCUDA_TEST_CLANGD;
    if (!clangd) {
      return skipped("there is no clangd");
    }
    // Without its own CUDA headers clangd knows no `__global__`, and says so on the line where only nvcc sees what is wrong.
    const text = `#ifdef __NVCC__
#define ONLY only_for_nvcc
#else
#define ONLY 1
#endif
__global__ void lone(int* p) { *p = ONLY; }
__global__ void k(float* y) {
  y[threadIdx.x] = powf(y[threadIdx.x], 2.0f);
}
int twice(int unused_name) { return undeclared_name; }
long wide() { return 1 << 40; }
`;
    const client = other("clangd", "cuda-cpp", clangd, ["--background-index=false"]);
    return sideBySide(client, {
      name: "beside.cu",
      text,
      edited: "// another line\n",
      code: "static/pow-small-exponent",
      common: ["undeclared_name", "shift count"],
      own: "only_for_nvcc",
    });
  },

  "Pyright and we, on one .py file": async () => {
    const pyright = process.env.STITCHCUDA_TEST_PYRIGHT;
    if (!pyright || !fs.existsSync(pyright)) {
      return skipped("there is no Pyright");
    }
    const text = `import torch\n\ndef total(batches: list[torch.Tensor]) -> float:\n    sum = 0.0\n    for batch in batches:\n        loss = torch.relu(batch).sum()\n        sum += loss.item()\n    return undeclared_name\n`;
    const client = other("pyright", "python", process.execPath, [pyright, "--stdio"]);
    return sideBySide(client, { name: "beside.py", text, edited: "# another line\n", code: "static/item-in-loop" });
  },
};
