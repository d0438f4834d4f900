// Beside other extensions that check the same file, as clangd's: an error or a warning that one of them shows is not shown again in a compiler's
// words. It comes back when theirs goes.
import * as vscode from "vscode";
import { isSame, type Said } from "./same";

type Show = (uri: vscode.Uri, diagnostics: vscode.Diagnostic[]) => void;

/** What compilers find, others find as well. */
const COMPILERS = /^(nvcc|clang)\/(error|warning)$/;

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
  const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri.toString());
  const said = ({ message, range }: vscode.Diagnostic, kind: Said["kind"]): Said => {
    return { kind, message, start: range.start, end: range.end, text: document?.getText(range) ?? "" };
  };
  const others = vscode.languages
    .getDiagnostics(uri)
    .filter((one) => one.source !== "stitchcuda")
    .map((one) => said(one, bySeverity(one)));
  return [...all.keys()].filter((at) => {
    const one = all[at];
    // By its code, since its severity may be configured.
    const kind = one && COMPILERS.exec(codeOf(one))?.[2];
    const ours = one && said(one, kind as Said["kind"]);
    return ours && !others.some((other) => isSame(ours, other));
  });
}

function bySeverity({ severity }: vscode.Diagnostic): Said["kind"] {
  switch (severity) {
    case vscode.DiagnosticSeverity.Error:
      return "error";
    case vscode.DiagnosticSeverity.Warning:
      return "warning";
    case vscode.DiagnosticSeverity.Information:
    case vscode.DiagnosticSeverity.Hint:
      return undefined;
  }
}

function pick(all: vscode.Diagnostic[], places: number[]): vscode.Diagnostic[] {
  return all.filter((_, at) => places.includes(at));
}

function codeOf({ code }: vscode.Diagnostic): string {
  return String(typeof code === "object" ? code.value : (code ?? ""));
}
