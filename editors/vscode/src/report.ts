// A run's report, as far as it is shown: what `stitchcuda runs show --format json` prints.

export interface Cost {
  cycles?: number | null;
}

export interface Compared {
  what: string;
  inputs: string;
  readAs: string;
  count: number;
  different: number;
  tolerance: number;
}

export interface Found {
  code: string;
  severity: string;
  message: string;
  advice?: string | null;
}

export interface Verdict {
  reference: string;
  candidate: string;
  answer: string;
  device: string;
  inputs: string;
  compared: Compared[];
  findings: Found[];
  notChecked: string[];
  notes: string[];
}

export interface Attempt {
  entry: "attempt";
  number: number;
  title: string;
  outcome: string;
  said: string;
  explanation: string;
  gain?: number | null;
  interval?: [number, number] | null;
  profile: string;
  verdict?: Verdict | null;
  seconds: number;
}

export interface Baseline {
  entry: "baseline";
  profile: string;
  seconds: number;
}

export interface PlanEntry {
  entry: "plan";
  plan: { summary: string; tasks: { title: string; description: string; expectedGain?: string }[] };
  reason?: string | null;
}

export interface Conclusion {
  entry: "conclusion";
  best?: number | null;
  gain?: number | null;
  said: string;
}

export type Entry = Attempt | Baseline | PlanEntry | Conclusion;

export interface Report {
  folder: string;
  manifest: {
    id: string;
    started: string;
    target: string;
    device: string;
    engine: string;
    model?: string | null;
    tolerance?: number | null;
    precision?: string | null;
  };
  history: Entry[];
  patch?: string | null;
}
