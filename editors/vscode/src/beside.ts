// Beside other extensions that check the same file, as clangd's: an error that one of them shows on a line is not shown again in a compiler's words.
// It comes back when theirs goes.
import * as vscode from "vscode";

type Show = (uri: vscode.Uri, diagnostics: vscode.Diagnostic[]) => void;

/** Producers whose errors others find as well. */
const COMPILERS = /^(nvcc|clang)\//;

export class Beside implements vscode.Disposable {
  /** What the server said last of each document, and how it is shown. */
  private readonly told = new Map<string, { all: vscode.Diagnostic[]; show: Show; shown: number[] }>();
  private readonly listening = vscode.languages.onDidChangeDiagnostics(({ uris }) => {
    uris.forEach((uri) => {
      this.again(uri);
    });
  });

  /** The server said this of a document. */
  handle(uri: vscode.Uri, all: vscode.Diagnostic[], show: Show): void {
    const left = remaining(uri, all);
    if (all.length > 0) {
      this.told.set(uri.toString(), { all, show, shown: left });
    } else {
      this.told.delete(uri.toString());
    }
    show(uri, pick(all, left));
  }

  /** Others said something else of it, or we did. */
  private again(uri: vscode.Uri): void {
    const told = this.told.get(uri.toString());
    if (!told) {
      return;
    }
    const left = remaining(uri, told.all);
    if (left.join() !== told.shown.join()) {
      told.shown = left;
      told.show(uri, pick(told.all, left));
    }
  }

  dispose(): void {
    this.listening.dispose();
  }
}

/** The places in `all` of what nobody else shows. */
function remaining(uri: vscode.Uri, all: vscode.Diagnostic[]): number[] {
  const others = vscode.languages.getDiagnostics(uri).filter((one) => one.source !== "stitchcuda" && isError(one));
  const lines = new Set(others.map((one) => one.range.start.line));
  return [...all.keys()].filter((at) => {
    const one = all[at];
    return one && !(isError(one) && COMPILERS.test(codeOf(one)) && lines.has(one.range.start.line));
  });
}

function pick(all: vscode.Diagnostic[], places: number[]): vscode.Diagnostic[] {
  return all.filter((_, at) => places.includes(at));
}

function isError(one: vscode.Diagnostic): boolean {
  return one.severity === vscode.DiagnosticSeverity.Error;
}

function codeOf({ code }: vscode.Diagnostic): string {
  return String(typeof code === "object" ? code.value : (code ?? ""));
}
