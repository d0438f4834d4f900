// Numbers as they are shown.

/** `1.93×`, with the device where it is an estimate. */
export function speedup(gain: number, device: string | undefined): string {
  const estimated = device?.startsWith("sim:") ? ` (estimated, ${device})` : "";
  return `${gain.toFixed(2)}×${estimated}`;
}

/** What a server that died took with it. */
export function endedWith(jobs: { title: string; run?: string }[]): string {
  const kept = jobs.some((job) => job.run !== undefined) ? " What a run had found until then is kept under Earlier Runs." : "";
  return `The StitchCUDA server ended, and with it: ${jobs.map((job) => job.title).join(", ")}.${kept}`;
}

/** A number with its unit. */
export function quantity(value: number, unit: "count" | "bytes" | "ratio" | "seconds"): string {
  switch (unit) {
    case "ratio":
      return `${Math.round(value * 100)}%`;
    case "bytes":
      return value >= 1024 ? `${(value / 1024).toFixed(1)} KiB` : `${value} bytes`;
    case "seconds":
      return duration(value);
    case "count":
      return String(Math.round(value * 100) / 100);
  }
}

/** Seconds in the unit that leaves something before the point, with three digits. */
function duration(seconds: number): string {
  const [unit, size] = DURATIONS.find(([, size]) => seconds >= size) ?? NANOSECONDS;
  return `${Number((seconds / size).toPrecision(3))} ${unit}`;
}

const NANOSECONDS: [string, number] = ["ns", 1e-9];
const DURATIONS: [string, number][] = [["s", 1], ["ms", 1e-3], ["µs", 1e-6], NANOSECONDS];
