// What a command is about: the editor that is shown, or the one that was shown last where something else is, as a walkthrough.
import * as vscode from "vscode";
import { SELECTOR } from "./client";

/** Why a command does nothing: no fault, and said as what it is. */
export class Refused extends Error {}

/** Whether the server has this document. */
export function isServed(document: vscode.TextDocument): boolean {
  return vscode.languages.match(SELECTOR, document) > 0;
}

/** The editors that commands are about. */
export class Shown implements vscode.Disposable {
  private last: vscode.TextDocument | undefined;
  private readonly followed = vscode.window.onDidChangeActiveTextEditor((editor) => this.note(editor));

  constructor() {
    this.note(vscode.window.activeTextEditor);
  }

  private note(editor: vscode.TextEditor | undefined): void {
    if (editor && isServed(editor.document)) {
      this.last = editor.document;
    }
  }

  /** The editor with what the server has; refused, in words, where there is none. */
  private async editor(): Promise<vscode.TextEditor> {
    const active = vscode.window.activeTextEditor;
    if (active) {
      const trouble = troubleOf(active.document);
      if (trouble) {
        throw new Refused(trouble);
      }
      return active;
    }
    if (!this.last || this.last.isClosed) {
      throw new Refused("Open a CUDA or Python file first.");
    }
    return vscode.window.showTextDocument(this.last);
  }

  /** The editor with a file that the server has; refused, in words, where there is none: what only was typed yet can't be compiled or run. */
  async file(): Promise<vscode.TextEditor> {
    const editor = await this.editor();
    if (editor.document.isUntitled) {
      throw new Refused("Save the file first: what is compiled and run is a file.");
    }
    return editor;
  }

  dispose(): void {
    this.followed.dispose();
  }
}

function troubleOf(document: vscode.TextDocument): string | undefined {
  if (isServed(document)) {
    return undefined;
  }
  if (!["cuda-cpp", "python"].includes(document.languageId)) {
    return `Open a CUDA or Python file first; what is shown is \`${document.languageId}\`.`;
  }
  if (document.isUntitled) {
    return "Save the file first: Python is looked at as soon as it is a file.";
  }
  return `What is shown is not a file itself (\`${document.uri.scheme}:\`). Open the file.`;
}
