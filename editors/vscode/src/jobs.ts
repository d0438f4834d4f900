// The view of jobs: what runs, what ended since the server was started, and the runs of before, which their folders keep.
import * as path from "node:path";
import * as vscode from "vscode";
import type { Job, RunSummary } from "./protocol";
import { speedup } from "./words";

/** Runs of before that are listed; all of them can be had with `Open a Run's Report`. */
const MOST_EARLIER = 50;

/** A run of before the server was started. */
export interface Earlier {
  run: string;
  summary: RunSummary;
}

interface Group {
  group: "running" | "finished" | "earlier";
}

type Node = Group | Job | Earlier;

const TITLES = { running: "Running", finished: "Finished", earlier: "Earlier Runs" };

/** Compiles come with every save, and say what they found elsewhere. */
const isListed = (job: Job): boolean => job.kind !== "compile";
const isOver = (job: Job): boolean => job.state !== "queued" && job.state !== "running";

export class Jobs implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly jobs = new Map<number, Job>();
  private runs: RunSummary[] = [];
  private readonly changed = new vscode.EventEmitter<Node | undefined>();
  private readonly told = new vscode.EventEmitter<Job>();
  readonly onDidChangeTreeData = this.changed.event;
  /** Each job as it is told. */
  readonly onJob = this.told.event;
  private readonly view: vscode.TreeView<Node>;
  private readonly bar: vscode.StatusBarItem;
  private readonly folders = vscode.workspace.onDidChangeWorkspaceFolders(() => this.show());

  constructor() {
    this.view = vscode.window.createTreeView("stitchcuda.jobs", { treeDataProvider: this });
    this.bar = vscode.window.createStatusBarItem("stitchcuda.jobs", vscode.StatusBarAlignment.Left, 0);
    this.bar.name = "StitchCUDA Jobs";
    this.bar.command = "stitchcuda.jobs.focus";
  }

  /** The jobs that are listed, those that run first, then the newest. */
  list(): Job[] {
    const listed = [...this.jobs.values()].filter(isListed);
    return listed.sort((a, b) => Number(isOver(a)) - Number(isOver(b)) || b.id - a.id);
  }

  get(id: number): Job | undefined {
    return this.jobs.get(id);
  }

  /** The job that made a run. */
  ofRun(run: string): Job | undefined {
    return [...this.jobs.values()].find((job) => job.run === run);
  }

  /** Runs of files of this workspace that no job of now made, the newest first. */
  earlier(): Earlier[] {
    const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath + path.sep);
    const isHere = (run: RunSummary): boolean => folders.length === 0 || folders.some((folder) => run.file.startsWith(folder));
    const listed = this.runs.filter((run) => isHere(run) && !this.ofRun(run.id));
    return listed
      .slice(-MOST_EARLIER)
      .reverse()
      .map((summary) => ({ run: summary.id, summary }));
  }

  update(job: Job): void {
    this.jobs.set(job.id, job);
    this.told.fire(job);
    this.show();
  }

  /** A server that starts anew counts its jobs anew. What runs came to is in their folders. */
  reset(jobs: Job[], runs: RunSummary[]): void {
    this.jobs.clear();
    jobs.forEach((job) => this.jobs.set(job.id, job));
    this.runs = runs;
    this.show();
  }

  private show(): void {
    this.changed.fire(undefined);
    const running = this.list().filter((job) => !isOver(job));
    const open = this.list().filter((job) => job.decision === "open").length;
    const badge = running.length + open;
    this.view.badge = badge > 0 ? { value: badge, tooltip: `${running.length} running, ${open} to review` } : undefined;
    const first = running[0];
    if (first) {
      const more = running.length > 1 ? ` (+${running.length - 1})` : "";
      this.bar.text = `$(sync~spin) ${first.title}${more}`;
      this.bar.tooltip = first.stage ?? "running";
      this.bar.show();
    } else if (open > 0) {
      this.bar.text = `$(diff) ${open} to review`;
      this.bar.tooltip = "Candidates wait for your review";
      this.bar.show();
    } else {
      this.bar.hide();
    }
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if ("group" in node) {
      return this.groupItem(node);
    }
    return "summary" in node ? earlierItem(node) : jobItem(node);
  }

  private groupItem({ group }: Group): vscode.TreeItem {
    // What is long over is out of the way, unless there is nothing else.
    const isOpen = group !== "earlier" || this.list().length === 0;
    const state = isOpen ? vscode.TreeItemCollapsibleState.Expanded : vscode.TreeItemCollapsibleState.Collapsed;
    const item = new vscode.TreeItem(TITLES[group], state);
    item.id = `${group} ${String(isOpen)}`;
    item.contextValue = "group";
    return item;
  }

  getChildren(node?: Node): Node[] {
    if (!node) {
      const groups: Group[] = [{ group: "running" }, { group: "finished" }, { group: "earlier" }];
      return groups.filter((group) => this.getChildren(group).length > 0);
    }
    if (!("group" in node)) {
      return [];
    }
    return node.group === "earlier" ? this.earlier() : this.list().filter((job) => isOver(job) === (node.group === "finished"));
  }

  dispose(): void {
    const parts: { dispose: () => unknown }[] = [this.view, this.bar, this.changed, this.told, this.folders];
    for (const part of parts) {
      part.dispose();
    }
  }
}

function jobItem(job: Job): vscode.TreeItem {
  const item = new vscode.TreeItem(job.title);
  item.id = String(job.id);
  item.description = describe(job);
  item.iconPath = icon(job);
  item.tooltip = tooltip(job);
  item.contextValue = [
    isOver(job) ? "over" : "running",
    job.run ? "run" : "",
    job.answer ? "verdict" : "",
    job.decision === "open" ? "open" : "",
  ]
    .filter(Boolean)
    .join(" ");
  if (isOver(job) && (job.run ?? job.answer)) {
    const command = job.answer ? "stitchcuda.showVerdict" : job.attempt ? "stitchcuda.reviewCandidate" : "stitchcuda.showEvidence";
    item.command = { command, title: "Open", arguments: [job] };
  }
  return item;
}

function earlierItem(node: Earlier): vscode.TreeItem {
  const { id, target, started, device, gain, onlyPlan, finished, attempts, engine } = node.summary;
  const item = new vscode.TreeItem(target);
  item.id = id;
  const came = onlyPlan ? "plan" : gain ? speedup(gain, device) : "nothing better";
  item.description = [came, finished ? "" : "not at its end", new Date(started).toLocaleString()].filter(Boolean).join(" · ");
  item.iconPath = new vscode.ThemeIcon(onlyPlan ? "checklist" : "history");
  const tried = onlyPlan ? "nothing was attempted" : `${attempts} attempts`;
  item.tooltip = [target, `${tried} on ${device} by the ${engine} engine`, `run ${id}`].join("\n");
  item.contextValue = gain ? "over run kept" : "over run";
  item.command = { command: gain ? "stitchcuda.reviewCandidate" : "stitchcuda.showEvidence", title: "Open", arguments: [node] };
  return item;
}

function describe(job: Job): string {
  const gain = job.speedup ? speedup(job.speedup, job.device) : undefined;
  if (!isOver(job)) {
    return [gain, job.stage ?? job.state].filter(Boolean).join(" · ");
  }
  const nothing = job.kind === "optimize" && !job.speedup ? "nothing better" : (job.answer?.replaceAll("-", " ") ?? "done");
  const end = job.state === "done" ? (job.decision ?? nothing) : job.state;
  return [gain, end === "open" ? "to review" : end].filter(Boolean).join(" · ");
}

function icon(job: Job): vscode.ThemeIcon {
  const colour = (name: string): vscode.ThemeColor => new vscode.ThemeColor(name);
  const failed = new vscode.ThemeIcon("error", colour("testing.iconFailed"));
  switch (job.state) {
    case "queued":
      return new vscode.ThemeIcon("clock");
    case "running":
      return new vscode.ThemeIcon("sync~spin");
    case "failed":
      return failed;
    case "cancelled":
      return new vscode.ThemeIcon("circle-slash");
    case "done":
      if (job.answer && job.answer !== "correct") {
        return failed;
      }
      return job.decision === "open" ? new vscode.ThemeIcon("diff") : new vscode.ThemeIcon("pass", colour("testing.iconPassed"));
  }
}

function tooltip(job: Job): string {
  const parts = [job.title, job.said ?? job.message ?? job.note, job.run && `run ${job.run}`, `${job.seconds.toFixed(1)} s`];
  return parts.filter(Boolean).join("\n");
}
