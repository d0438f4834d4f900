// The extension: thin over the server. What it knows of CUDA is nothing; it starts the server, shows what that says, and asks.
import * as vscode from "vscode";
import { ExecuteCommandRequest, LanguageClient, State } from "vscode-languageclient/node";
import { Beside } from "./beside";
import { namedServer, offerBuild } from "./build";
import { makeClient } from "./client";
import { registerCommands } from "./commands";
import { debugInformation } from "./debug";
import { Pages } from "./explain";
import { Heat } from "./heat";
import { Jobs } from "./jobs";
import { type Located, locate, NotLocated } from "./locate";
import { lazyChannel, traceChannel } from "./output";
import { doctor, jobChanged, listJobs, listRuns, reviewOffered, statusChanged } from "./protocol";
import { Restarts } from "./restarts";
import { Results } from "./results";
import { Reviews } from "./review";
import { hasKey, secretEnvironment } from "./secrets";
import { Shown } from "./shown";
import { StatusItems } from "./status";
import { endedWith } from "./words";

/** Everything that lives as long as the extension. */
export class Extension implements vscode.Disposable {
  readonly output = lazyChannel("StitchCUDA");
  readonly trace = traceChannel("StitchCUDA Trace");
  readonly beside = new Beside();
  readonly jobs = new Jobs();
  readonly status = new StatusItems();
  readonly shown = new Shown();
  readonly pages = new Pages({
    doctor: async () => (await (await this.ready()).sendRequest(doctor, {})).text,
    debug: async () => debugInformation(this.context, this.located, this.status.last, await hasKey(this.context)),
    explain: async (code) => {
      const params = { command: "stitchcuda.explain", arguments: [code] };
      return ((await (await this.ready()).sendRequest(ExecuteCommandRequest.type, params)) as { markdown: string }).markdown;
    },
  });
  readonly reviews = new Reviews(() => this.ready(), this.jobs);
  readonly results = new Results(this);
  readonly heat: Heat;
  readonly restarts = new Restarts(() => this.restart());
  client: LanguageClient | undefined;
  located: Located | undefined;

  constructor(readonly context: vscode.ExtensionContext) {
    this.heat = new Heat(() => this.client, context.workspaceState);
  }

  /** The client of a server that runs. */
  running(): LanguageClient {
    if (!this.client?.isRunning()) {
      throw new Error("The StitchCUDA server does not run. `StitchCUDA: Restart the Server` starts it.");
    }
    return this.client;
  }

  /** The same, once a start that is under way has ended. */
  async ready(): Promise<LanguageClient> {
    await this.restarts.settled();
    return this.running();
  }

  private async restart(): Promise<void> {
    const before = this.client;
    this.client = undefined;
    // One that has crashed can't be asked to stop.
    await before?.dispose().catch(() => {});
    this.lose();
    this.status.starting();
    try {
      this.located = await locate(namedServer(), this.context.extensionPath);
      this.client = makeClient(this.located.path, await secretEnvironment(this.context), this);
      this.listen(this.client);
      await this.client.start();
    } catch (error) {
      const said = error instanceof Error ? error.message : String(error);
      this.status.stopped(said);
      if (error instanceof NotLocated) {
        void offerBuild(this.context, said);
      } else {
        this.output.error(said);
      }
    }
  }

  /** A server is gone, and its jobs with it, whoever ended it: none may look as if it ran on. */
  private lose(): void {
    const lost = this.jobs.list().filter((job) => job.state === "running" || job.state === "queued");
    this.jobs.reset([], []);
    this.heat.later();
    if (lost.length > 0) {
      void vscode.window.showWarningMessage(endedWith(lost));
    }
  }

  private listen(client: LanguageClient): void {
    client.onNotification(statusChanged, (status) => this.status.show(status));
    client.onNotification(reviewOffered, (review) => void this.reviews.offered(review));
    client.onNotification(jobChanged, (job) => {
      // What a server says of its jobs while it is stopped is about numbers that the next one gives to others.
      if (client !== this.client) {
        return;
      }
      this.jobs.update(job);
      if (job.kind === "optimize") {
        // Ends a step of the walkthrough.
        void vscode.commands.executeCommand("setContext", "stitchcuda.hasOptimized", true);
      }
      if (job.state !== "running") {
        this.heat.later();
      }
      void this.results.ended(job);
    });
    client.onDidChangeState(({ newState }) => {
      if (client !== this.client) {
        return;
      }
      if (newState === State.Running) {
        this.results.reset();
        void this.list(client).catch(() => {});
        this.heat.later();
      } else if (newState === State.Stopped) {
        this.lose();
        this.status.stopped("the server ended");
      } else if (newState === State.Starting) {
        this.status.starting();
      }
    });
  }

  /** What there is when a server starts: its jobs, and the runs of before. */
  private async list(client: LanguageClient): Promise<void> {
    const [{ jobs }, { runs }] = await Promise.all([client.sendRequest(listJobs, {}), client.sendRequest(listRuns, {})]);
    this.jobs.reset(jobs, runs);
  }

  dispose(): void {
    const { heat, reviews, pages, shown, jobs, status, beside, output, trace } = this;
    [heat, reviews, pages, shown, jobs, status, beside, output, trace].forEach((part) => part.dispose());
  }
}

let extension: Extension | undefined;

/** Starts everything. What it gives is for tests. */
export async function activate(context: vscode.ExtensionContext): Promise<Extension> {
  const made = new Extension(context);
  extension = made;
  context.subscriptions.push(
    made,
    ...registerCommands(made),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void made.restarts.request()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("stitchcuda.server")) {
        void made.restarts.request();
      }
    }),
    context.secrets.onDidChange(() => void made.restarts.request()),
  );
  await made.restarts.request();
  return made;
}

export async function deactivate(): Promise<void> {
  await extension?.client?.dispose().catch(() => {});
}
