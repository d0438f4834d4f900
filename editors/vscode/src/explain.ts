// Pages of the server as Markdown: what a code means.
import * as vscode from "vscode";

const SCHEME = "stitchcuda-page";
const pages = new Map<string, string>();

/** Serves the pages that were shown. */
export function registerPages(): vscode.Disposable {
  return vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
    provideTextDocumentContent: (uri) => pages.get(uri.path) ?? "",
  });
}

/** Shows the page of a code, from the result of `stitchcuda.explain`. */
export async function explain(result: unknown): Promise<void> {
  const { code, markdown } = (result ?? {}) as { code?: string; markdown?: string };
  if (code && markdown) {
    await showPage(code, markdown);
  }
}

/** Shows Markdown as a preview. */
export async function showPage(name: string, markdown: string): Promise<void> {
  const path = `/${name.replace(/[^\w.-]+/g, " ")}.md`;
  pages.set(path, markdown);
  await vscode.commands.executeCommand("markdown.showPreview", vscode.Uri.from({ scheme: SCHEME, path }));
}

/** Shows a text as a document that is nobody's file. */
export async function showText(content: string, language: string): Promise<void> {
  const document = await vscode.workspace.openTextDocument({ content, language });
  await vscode.window.showTextDocument(document, { preview: true });
}
