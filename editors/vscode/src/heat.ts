// Heat in the gutter: how hot each line is, by what was measured of it, until the code changes.
import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import { type HeatNumber, readHeat } from "./protocol";
import { quantity } from "./words";

/** From cool to hot. */
const COLOURS = ["#4575b4", "#91bfdb", "#fee090", "#fc8d59", "#d73027"];

/** How long nothing may be typed before the numbers are asked for again, in milliseconds. */
const PAUSE = 250;

export class Heat implements vscode.Disposable {
  private readonly levels = COLOURS.map(decoration);
  private readonly parts: vscode.Disposable[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** The numbers that are shown now, by document. */
  readonly shown = new Map<string, HeatNumber[]>();

  constructor(
    private readonly client: () => LanguageClient | undefined,
    private readonly state: vscode.Memento,
  ) {
    this.parts.push(
      vscode.window.onDidChangeVisibleTextEditors(() => this.later()),
      vscode.workspace.onDidChangeTextDocument(() => this.later()),
    );
  }

  get isOn(): boolean {
    return this.state.get("heat", false);
  }

  /** Whether a line of what is visible has heat. */
  isSeen(): boolean {
    const numbers = vscode.window.visibleTextEditors.flatMap(({ document }) => this.shown.get(document.uri.toString()) ?? []);
    return byLine(numbers).size > 0;
  }

  async toggle(): Promise<void> {
    await this.state.update("heat", !this.isOn);
    await this.refresh();
  }

  /** Asks again, soon. */
  later(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.refresh(), PAUSE);
  }

  async refresh(): Promise<void> {
    for (const editor of vscode.window.visibleTextEditors) {
      await this.draw(editor);
    }
  }

  private async draw(editor: vscode.TextEditor): Promise<void> {
    const { document } = editor;
    const isOurs = document.uri.scheme === "file" && ["cuda-cpp", "python"].includes(document.languageId);
    const client = this.client();
    if (!isOurs) {
      return;
    }
    const { version } = document;
    let numbers: HeatNumber[] = [];
    // Without a server nothing is known of the text, and what was known is not shown on.
    if (this.isOn && client?.isRunning()) {
      const uri = client.code2ProtocolConverter.asUri(document.uri);
      const heat = await client.sendRequest(readHeat, { textDocument: { uri } }).catch(() => undefined);
      if (heat?.version !== version || document.version !== version) {
        return;
      }
      numbers = heat.lines;
    }
    this.shown.set(document.uri.toString(), numbers);
    const lines = byLine(numbers.filter((number) => number.line < document.lineCount));
    const options = this.levels.map((): vscode.DecorationOptions[] => []);
    for (const [line, of] of lines) {
      const hottest = Math.max(...of.map((number) => number.heat ?? 0));
      const level = Math.min(COLOURS.length - 1, Math.floor(hottest * COLOURS.length));
      options[level]?.push({ range: document.lineAt(line).range, hoverMessage: table(of) });
    }
    this.levels.forEach((level, index) => editor.setDecorations(level, options[index] ?? []));
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const part of [...this.levels, ...this.parts]) {
      part.dispose();
    }
  }
}

/** The lines that have a scale; a line of plain counts is neither hot nor cool. */
function byLine(numbers: HeatNumber[]): Map<number, HeatNumber[]> {
  const lines = new Map<number, HeatNumber[]>();
  for (const number of numbers) {
    lines.set(number.line, [...(lines.get(number.line) ?? []), number]);
  }
  return new Map([...lines].filter(([, of]) => of.some((number) => typeof number.heat === "number")));
}

function table(numbers: HeatNumber[]): vscode.MarkdownString {
  const text = new vscode.MarkdownString();
  const rows = numbers.map((number) => `${number.subject}: ${quantity(number.value, number.unit)} ${number.label} (${number.source})`);
  // As Markdown, since plain text is shown without places to break a line at.
  text.appendMarkdown(rows.map((row) => `- ${row.replace(/[\\`*_{}[\]()#+\-.!|<>&~]/g, "\\$&")}`).join("\n"));
  return text;
}

/** The hotter, the wider too: not everybody tells the colours apart. */
function decoration(colour: string, level: number): vscode.TextEditorDecorationType {
  const width = 2 + 2 * level;
  const rectangle = `<rect x="${8 - width / 2}" y="0" width="${width}" height="16" fill="${colour}"/>`;
  const bar = `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16">${rectangle}</svg>`;
  return vscode.window.createTextEditorDecorationType({
    gutterIconPath: vscode.Uri.parse(`data:image/svg+xml;utf8,${encodeURIComponent(bar)}`),
    gutterIconSize: "contain",
    overviewRulerColor: colour,
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });
}
