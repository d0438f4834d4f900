// Side by side with other servers on the same files: clangd on CUDA, Pyright (the part of Pylance that finds errors) on Python.
import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as vscode from "vscode";
import { LanguageClient, RevealOutputChannelOn } from "vscode-languageclient/node";
import { findings, open, ours, until } from "../harness";
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

/** Everything shown of a file, as text: one that is doubled is there twice. */
function shown(uri: vscode.Uri): string[] {
  return vscode.languages
    .getDiagnostics(uri)
    .map((found) => `${found.source} ${found.range.start.line}:${found.range.start.character} ${found.message.split("\n", 1)[0]}`);
}

function assertNoneTwice(lines: string[]): void {
  assert.deepEqual(lines, [...new Set(lines)]);
}

async function sideBySide(client: LanguageClient, name: string, text: string, edited: string, code: string): Promise<string> {
  try {
    await client.start();
    const editor = await open(name, text);
    const { uri } = editor.document;
    const others = (): vscode.Diagnostic[] => vscode.languages.getDiagnostics(uri).filter((found) => found.source !== "stitchcuda");
    await findings(uri, code);
    const theirs = await until("the other server's diagnostics", () => others().length > 0 && others().length);
    assertNoneTwice(shown(uri));
    const mine = ours(uri).length;
    // Both see an edit, and neither takes the other's away.
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), edited));
    await until("both after an edit", () => ours(uri).length === mine && others().length === theirs);
    assertNoneTwice(shown(uri));
    await editor.document.save();
    await client.stop();
    await until("the other server's to go", () => others().length === 0);
    assert.equal(ours(uri).length, mine, "ours stay when the other server ends");
    return `${mine} of ours, ${theirs} of the other's`;
  } finally {
    await client.dispose().catch(() => {});
  }
}

export const beside: Scenarios = {
  "clangd and we, on one .cu file": async () => {
    const clangd = process.env.STITCHCUDA_TEST_CLANGD;
    if (!clangd) {
      return "SKIPPED: there is no clangd";
    }
    const text = `__global__ void k(float* y) {\n  y[threadIdx.x] = powf(y[threadIdx.x], 2.0f);\n}\nint twice(int unused_name) { return undeclared_name; }\n`;
    const client = other("clangd", "cuda-cpp", clangd, ["--background-index=false"]);
    return sideBySide(client, "beside.cu", text, "// another line\n", "static/pow-small-exponent");
  },

  "Pyright and we, on one .py file": async () => {
    const pyright = process.env.STITCHCUDA_TEST_PYRIGHT;
    if (!pyright || !fs.existsSync(pyright)) {
      return "SKIPPED: there is no Pyright";
    }
    const text = `import torch\n\ndef total(batches: list[torch.Tensor]) -> float:\n    sum = 0.0\n    for batch in batches:\n        loss = torch.relu(batch).sum()\n        sum += loss.item()\n    return undeclared_name\n`;
    const client = other("pyright", "python", process.execPath, [pyright, "--stdio"]);
    return sideBySide(client, "beside.py", text, "# another line\n", "static/item-in-loop");
  },
};
