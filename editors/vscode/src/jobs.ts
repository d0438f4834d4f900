// The view of jobs: what runs and what ended, each as the server told it last.
import * as vscode from "vscode";
import type { Job } from "./protocol";
import { speedup } from "./words";

/** Compiles come with every save, and say what they found elsewhere. */
const isListed = (job: Job): boolean => job.kind !== "compile";
const isOver = (job: Job): boolean => job.state !== "queued" && job.state !== "running";

export class Jobs implements vscode.TreeDataProvider<Job>, vscode.Disposable {
  private readonly jobs = new Map<number, Job>();
  private readonly changed = new vscode.EventEmitter<Job | undefined>();
  private readonly told = new vscode.EventEmitter<Job>();
  readonly onDidChangeTreeData = this.changed.event;
  /** Each job as it is told. */
  readonly onJob = this.told.event;
  private readonly view: vscode.TreeView<Job>;
  private readonly bar: vscode.StatusBarItem;

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

  update(job: Job): void {
    this.jobs.set(job.id, job);
    this.told.fire(job);
    this.show();
  }

  /** A server that starts anew counts its jobs anew; runs that ended stay to be read. */
  reset(jobs: Job[]): void {
    this.jobs.clear();
    jobs.forEach((job) => this.jobs.set(job.id, job));
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

  getTreeItem(job: Job): vscode.TreeItem {
    const item = new vscode.TreeItem(job.title);
    item.id = String(job.id);
    item.description = describe(job);
    item.iconPath = icon(job);
    item.tooltip = tooltip(job);
    item.contextValue = [isOver(job) ? "over" : "running", job.run ? "run" : "", job.decision === "open" ? "open" : ""]
      .filter(Boolean)
      .join(" ");
    if (job.run && isOver(job)) {
      const command = job.attempt ? "stitchcuda.reviewCandidate" : "stitchcuda.showEvidence";
      item.command = { command, title: "Open", arguments: [job] };
    }
    return item;
  }

  getChildren(job?: Job): Job[] {
    return job ? [] : this.list();
  }

  dispose(): void {
    this.view.dispose();
    this.bar.dispose();
    this.changed.dispose();
    this.told.dispose();
  }
}

function describe(job: Job): string {
  const gain = job.speedup ? speedup(job.speedup, job.device) : undefined;
  if (!isOver(job)) {
    return [gain, job.stage ?? job.state].filter(Boolean).join(" · ");
  }
  const nothing = job.kind === "optimize" && !job.speedup ? "nothing better" : "done";
  const end = job.state === "done" ? (job.decision ?? nothing) : job.state;
  return [gain, end === "open" ? "to review" : end].filter(Boolean).join(" · ");
}

function icon(job: Job): vscode.ThemeIcon {
  const colour = (name: string): vscode.ThemeColor => new vscode.ThemeColor(name);
  switch (job.state) {
    case "queued":
      return new vscode.ThemeIcon("clock");
    case "running":
      return new vscode.ThemeIcon("sync~spin");
    case "failed":
      return new vscode.ThemeIcon("error", colour("testing.iconFailed"));
    case "cancelled":
      return new vscode.ThemeIcon("circle-slash");
    case "done":
      return job.decision === "open" ? new vscode.ThemeIcon("diff") : new vscode.ThemeIcon("pass", colour("testing.iconPassed"));
  }
}

function tooltip(job: Job): string {
  const parts = [job.title, job.said ?? job.message ?? job.note, job.run && `run ${job.run}`, `${job.seconds.toFixed(1)} s`];
  return parts.filter(Boolean).join("\n");
}
