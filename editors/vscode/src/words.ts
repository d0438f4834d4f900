// Numbers as they are shown.

/** `1.93×`, with the device where it is an estimate. */
export function speedup(gain: number, device: string | undefined): string {
  const estimated = device?.startsWith("sim:") ? ` (estimated, ${device})` : "";
  return `${gain.toFixed(2)}×${estimated}`;
}

/** Seconds in three digits: `3.20 ms`. */
function time(seconds: number): string {
  const units: [number, string][] = [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "µs"],
  ];
  const [size, name] = units.find(([size]) => seconds >= size) ?? [1e-9, "ns"];
  return `${(seconds / size).toPrecision(3)} ${name}`;
}

/** A number with its unit. */
export function quantity(value: number, unit: "count" | "bytes" | "ratio" | "seconds"): string {
  switch (unit) {
    case "ratio":
      return `${Math.round(value * 100)}%`;
    case "bytes":
      return value >= 1024 ? `${(value / 1024).toFixed(1)} KiB` : `${value} bytes`;
    case "count":
      return String(Math.round(value * 100) / 100);
    case "seconds":
      return time(value);
  }
}
