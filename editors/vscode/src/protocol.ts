// The messages of editors/PROTOCOL.md.
import { NotificationType, RequestType } from "vscode-languageclient/node";
import type { Verdict } from "./report";

export type JobState = "queued" | "running" | "done" | "failed" | "cancelled";

export interface Job {
  id: number;
  kind: "compile" | "install" | "profile" | "verify" | "plan" | "optimize";
  title: string;
  state: JobState;
  stage?: string;
  percentage?: number;
  note?: string;
  message?: string;
  seconds: number;
  uri?: string;
  run?: string;
  device?: string;
  speedup?: number;
  attempt?: number;
  said?: string;
  answer?: string;
  decision?: "open" | "accepted" | "rejected";
}

export interface Status {
  health: "ok" | "warning";
  message?: string;
  toolkit?: string;
  architecture?: string;
  device?: string;
  engine?: string;
  busy: boolean;
  paused: boolean;
  restricted: boolean;
}

export interface Review {
  job: number;
  run: string;
  attempt: number;
  uri: string;
  target: string;
  said: string;
  speedup?: number;
  isCurrent: boolean;
}

export interface RunRef {
  run: string;
  attempt?: number;
}

export interface Candidate {
  run: string;
  attempt: number;
  target: string;
  uri: string;
  original: string;
  candidate: string;
  said: string;
  speedup?: number;
  version?: number;
  isCurrent: boolean;
}

export interface RunSummary {
  id: string;
  started: string;
  target: string;
  file: string;
  device: string;
  engine: string;
  onlyPlan: boolean;
  attempts: number;
  gain?: number | null;
  finished: boolean;
}

export interface HeatNumber {
  line: number;
  quantity: string;
  label: string;
  value: number;
  unit: "count" | "bytes" | "ratio" | "seconds";
  subject: string;
  heat?: number | null;
  source: string;
}

export interface Heat {
  uri: string;
  version?: number;
  lines: HeatNumber[];
}

export interface Doctor {
  text: string;
  isGood: boolean;
}

export const jobChanged = new NotificationType<Job>("stitchcuda/job");
export const statusChanged = new NotificationType<Status>("stitchcuda/status");
export const reviewOffered = new NotificationType<Review>("stitchcuda/review");

export const listJobs = new RequestType<object, { jobs: Job[] }, void>("stitchcuda/jobs");
export const cancelJob = new RequestType<{ job: number }, { cancelled: boolean }, void>("stitchcuda/cancel");
export const readVerdict = new RequestType<{ job: number }, Verdict, void>("stitchcuda/verdict");
export const listRuns = new RequestType<object, { runs: RunSummary[] }, void>("stitchcuda/runs");
export const readRun = new RequestType<RunRef, Record<string, unknown>, void>("stitchcuda/run");
export const readCandidate = new RequestType<RunRef, Candidate, void>("stitchcuda/candidate");
export const accept = new RequestType<RunRef, { version?: number }, void>("stitchcuda/accept");
export const reject = new RequestType<RunRef, object, void>("stitchcuda/reject");
export const pause = new RequestType<{ paused: boolean }, { paused: boolean }, void>("stitchcuda/pause");
export const readHeat = new RequestType<{ textDocument: { uri: string } }, Heat, void>("stitchcuda/heat");
export const doctor = new RequestType<object, Doctor, void>("stitchcuda/doctor");
