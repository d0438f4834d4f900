// Candidates as a difference, to be accepted or rejected.
import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import type { Jobs } from "./jobs";
import { accept, type Candidate, type Job, readCandidate, reject, type Review, type RunRef } from "./protocol";
import { speedup } from "./words";

/** Both sides of the difference: `stitchcuda:/candidate/RUN/NUMBER/FILE` and `…/original/…`. */
export const SCHEME = "stitchcuda";

/** How long the editor may take to make an edit that was accepted, in milliseconds. */
const LONGEST_EDIT = 20_000;

export class Reviews implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly shown = new Map<string, Candidate>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);

  constructor(
    private readonly client: () => Promise<LanguageClient>,
    private readonly jobs: Jobs,
  ) {}

  /** A difference that the editor shows again after a restart is asked for again. */
  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const of = fromUri(uri);
    if (!of) {
      return "";
    }
    const candidate = this.shown.get(`${of.run}/${of.attempt}`) ?? (await this.read(of));
    return uri.path.startsWith("/original/") ? candidate.original : candidate.candidate;
  }

  private async read(of: RunRef): Promise<Candidate> {
    const candidate = await (await this.client()).sendRequest(readCandidate, ref(of));
    this.shown.set(`${candidate.run}/${candidate.attempt}`, candidate);
    return candidate;
  }

  /** Tells that there is something to review; the difference comes when it is asked for. */
  async offered(review: Review): Promise<void> {
    const show = "Review";
    const evidence = "Show Evidence";
    const changed = review.isCurrent ? "" : " The file was edited meanwhile, so it can be read, and not be accepted.";
    const answer = await vscode.window.showInformationMessage(`${review.target}: ${review.said}${changed}`, show, evidence);
    if (answer === show) {
      await this.open(review);
    } else if (answer === evidence) {
      await vscode.commands.executeCommand("stitchcuda.showEvidence", review);
    }
  }

  /** Shows a candidate beside the code as it was. */
  async open(of: RunRef): Promise<void> {
    const candidate = await this.read(of);
    const device = this.jobs.ofRun(candidate.run)?.device;
    const gain = candidate.speedup ? ` · ${speedup(candidate.speedup, device)}` : "";
    const title = `${candidate.target}${gain} (original ↔ candidate)`;
    await vscode.commands.executeCommand("vscode.diff", side("original", candidate), side("candidate", candidate), title, {
      preview: false,
    });
  }

  /** Has the edit made in the open document; the server refuses where its text is another than the run began with. */
  async accept(of: RunRef): Promise<boolean> {
    const wanted = ref(of);
    const candidate = await (await this.client()).sendRequest(readCandidate, wanted);
    // The server makes edits of open documents only, by their version.
    await vscode.window.showTextDocument(vscode.Uri.parse(candidate.uri), { preview: false });
    const decided = this.decided(candidate.run);
    try {
      await (await this.client()).sendRequest(accept, wanted);
      if (await decided.done) {
        await this.close(candidate);
        return true;
      }
      return false;
    } catch (error) {
      void vscode.window.showWarningMessage(error instanceof Error ? error.message : String(error));
      return false;
    } finally {
      decided.dispose();
    }
  }

  /** The person does not want it. */
  async reject(of: RunRef): Promise<void> {
    const candidate = await (await this.client()).sendRequest(readCandidate, ref(of));
    await (await this.client()).sendRequest(reject, ref(of));
    await this.close(candidate);
  }

  private decided(run: string): { done: Promise<boolean>; dispose: () => void } {
    // Runs of an earlier session have no job that would tell.
    if (!this.jobs.ofRun(run)) {
      return { done: Promise.resolve(true), dispose: () => {} };
    }
    let dispose = (): void => {};
    const done = new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), LONGEST_EDIT);
      const heard = this.jobs.onJob((job) => {
        if (job.run === run && job.decision === "accepted") {
          resolve(true);
        }
      });
      dispose = () => {
        clearTimeout(timer);
        heard.dispose();
      };
    });
    return { done, dispose };
  }

  private async close(candidate: Candidate): Promise<void> {
    const path = side("candidate", candidate).path;
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    const ours = tabs.filter((tab) => tab.input instanceof vscode.TabInputTextDiff && tab.input.modified.path === path);
    await vscode.window.tabGroups.close(ours);
  }

  dispose(): void {
    this.registration.dispose();
  }
}

/** The run that a command is about: what it was given, or the difference that is shown. */
export function runOf(argument: unknown): RunRef | undefined {
  if (argument instanceof vscode.Uri) {
    return fromUri(argument);
  }
  const given = argument as Partial<Job> | undefined;
  if (given?.run) {
    return given.attempt === undefined ? { run: given.run } : { run: given.run, attempt: given.attempt };
  }
  const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
  return input instanceof vscode.TabInputTextDiff ? fromUri(input.modified) : undefined;
}

function fromUri(uri: vscode.Uri): RunRef | undefined {
  const [, side, run, attempt] = uri.path.split("/");
  return uri.scheme === SCHEME && side && run ? { run, attempt: Number(attempt) } : undefined;
}

/** What requests take, and nothing else that a job or a review has. */
function ref(of: RunRef): RunRef {
  return of.attempt === undefined ? { run: of.run } : { run: of.run, attempt: of.attempt };
}

function side(name: "original" | "candidate", candidate: Candidate): vscode.Uri {
  const file = candidate.uri.slice(candidate.uri.lastIndexOf("/") + 1);
  const path = `/${name}/${candidate.run}/${candidate.attempt}/${decodeURIComponent(file)}`;
  return vscode.Uri.from({ scheme: SCHEME, path });
}
