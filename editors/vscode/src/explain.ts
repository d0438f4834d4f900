// Pages that are nobody's file: what a code means, what the doctor says, what helps with a fault. Where the editor shows one again after a
// restart, it is made anew.
import * as vscode from "vscode";

const SCHEME = "stitchcuda-page";

/** How a page is made, by its name in the address; it is given what the address asks. */
export type Makers = Record<string, (query: string) => Promise<string>>;

export class Pages implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);

  constructor(private readonly makers: Makers) {}

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const known = this.texts.get(uri.toString());
    if (known !== undefined) {
      return known;
    }
    const [, maker] = uri.path.split("/");
    return (await this.makers[maker ?? ""]?.(uri.query)) ?? "";
  }

  private put(uri: vscode.Uri, text: string): void {
    this.texts.set(uri.toString(), text);
    this.changed.fire(uri);
  }

  /** Shows a page as a text; the end of `file` says of what language. */
  async show(maker: string, file: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${maker}/${file}` });
    this.put(uri, (await this.makers[maker]?.("")) ?? "");
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: true });
  }

  /** Shows the page of a code, from the result of `stitchcuda.explain`. */
  async explain(result: unknown): Promise<void> {
    const { code, markdown } = (result ?? {}) as { code?: string; markdown?: string };
    if (code && markdown) {
      const path = `/explain/${code.replace(/[^\w.-]+/g, " ")}.md`;
      const uri = vscode.Uri.from({ scheme: SCHEME, path, query: code });
      this.put(uri, markdown);
      await vscode.commands.executeCommand("markdown.showPreview", uri);
    }
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}
