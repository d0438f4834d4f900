// What is asked for and comes later: a plan, a verdict. Their ends are told, and shown when they are asked for.
import * as vscode from "vscode";
import type { Extension } from "./extension";
import { type Job, readVerdict } from "./protocol";
import { showVerdict } from "./evidence";

/** Tells the end of a plan or a verification, once. */
export class Results {
  private readonly told = new Set<number>();

  constructor(private readonly extension: Extension) {}

  async ended(job: Job): Promise<void> {
    const isResult = job.kind === "plan" || job.kind === "verify";
    if (!isResult || job.state !== "done" || this.told.has(job.id)) {
      return;
    }
    this.told.add(job.id);
    const [button, command] =
      job.kind === "plan" ? ["Show the Plan", "stitchcuda.showEvidence"] : ["Show the Verdict", "stitchcuda.showVerdict"];
    const isGood = job.kind === "plan" || job.answer === "correct";
    const say = isGood ? vscode.window.showInformationMessage : vscode.window.showWarningMessage;
    const said = job.said ?? job.title;
    if ((await say(job.kind === "plan" ? `${job.title}: ${said}` : said, button)) === button) {
      await vscode.commands.executeCommand(command, job);
    }
  }

  /** A server that starts anew counts its jobs anew. */
  reset(): void {
    this.told.clear();
  }

  /** Shows the verdict of a job: the one given, or one that the person picks. */
  async showVerdict(given?: Job): Promise<void> {
    const verified = this.extension.jobs.list().filter((job) => job.answer !== undefined);
    if (!given && verified.length === 0) {
      void vscode.window.showInformationMessage("Nothing was verified since the server was started.");
      return;
    }
    const items = verified.map((job) => ({ label: job.title, description: job.answer ?? "", detail: job.said ?? "", job }));
    const job = given ?? (await vscode.window.showQuickPick(items, { title: "Which Verdict?" }))?.job;
    if (job) {
      showVerdict(job, await this.extension.running().sendRequest(readVerdict, { job: job.id }));
    }
  }
}

type Against = { candidate: string } | { reference: "saved" | "committed" };

/** What the text is to be verified against, as the person picks it. */
export async function pickAgainst(extension: Extension, document: vscode.TextDocument): Promise<Against | undefined> {
  const saved = "The Text That Was Saved";
  const committed = "The Last Commit";
  const other = "Another File…";
  const items: vscode.QuickPickItem[] = [
    ...(document.isDirty ? [{ label: saved, detail: "Does the text of now do what the file on disk does?" }] : []),
    { label: committed, detail: "Does the text of now do what the committed file does?" },
    { label: other, detail: "Does another file do what this one does?" },
  ];
  const picked = await vscode.window.showQuickPick(items, { title: "Verify Against What?" });
  switch (picked?.label) {
    case saved:
      return { reference: "saved" };
    case committed:
      return { reference: "committed" };
    case other: {
      const filters = document.languageId === "python" ? { Python: ["py"] } : { CUDA: ["cu", "cuh"] };
      const files = await vscode.window.showOpenDialog({ title: "Choose the Candidate", openLabel: "Verify", filters });
      const file = files?.[0];
      return file && { candidate: extension.running().code2ProtocolConverter.asUri(file) };
    }
    default:
      return undefined;
  }
}
