// The page of a run, made of escaped text only.
import type { Attempt, PlanEntry, Report, Verdict } from "./report";

/** Text that is shown as it is, whatever it holds. */
export function escape(text: unknown): string {
  const signs: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return String(text).replace(/[&<>"']/g, (sign) => signs[sign] ?? sign);
}

/** The page of a run. Nothing may be loaded by it, and only the style sheet with this nonce counts. */
export function page(report: Report, nonce: string): string {
  const { manifest, history, patch } = report;
  const attempts = history.filter((entry): entry is Attempt => entry.entry === "attempt");
  const conclusion = history.find((entry) => entry.entry === "conclusion");
  const best = attempts.find((attempt) => attempt.number === conclusion?.best);
  const baseline = history.find((entry) => entry.entry === "baseline");
  const plans = history.flatMap((entry) => (entry.entry === "plan" ? [entry] : []));
  const engine = manifest.model ? `${manifest.engine} (${manifest.model})` : manifest.engine;
  const parts = [
    `<h1>${escape(manifest.target)}</h1>`,
    `<p class="said">${escape(conclusion?.said ?? "The run is not at its end.")}</p>`,
    `<p class="about">${escape(`${manifest.started} · ${manifest.device} · ${engine} · run ${manifest.id}`)}</p>`,
    best?.verdict ? section("The verdict", verdict(best.verdict)) : "",
    attempts.length > 0 ? section("Attempts", table(["number", "task", "outcome", "gain"], attempts.map(attemptRow))) : "",
    ...plans.map((entry) => section(entry.reason ? "A further plan" : "The plan", plan(entry.plan, entry.reason))),
    patch ? section("The patch", diff(patch)) : "",
    baseline ? section("Measured: the code as it was", pre(baseline.profile)) : "",
    best ? section(`Measured: attempt ${best.number}`, pre(best.profile)) : "",
    `<p class="about">${escape(report.folder)}</p>`,
  ];
  return whole(manifest.target, parts, nonce);
}

/** The page of a verification, under the same rules. */
export function verdictPage(of: Verdict, said: string, nonce: string): string {
  const found = of.findings.map((finding) => [finding.severity, finding.code, finding.message, finding.advice ?? ""].map(escape));
  const parts = [
    `<h1>${escape(of.candidate)}</h1>`,
    `<p class="said">${escape(said)}</p>`,
    `<p class="about">${escape(`against ${of.reference}`)}</p>`,
    found.length > 0 ? section("What was found", table(["severity", "code", "what was found", "what to do"], found)) : "",
    section("The verdict", verdict(of)),
  ];
  return whole(of.candidate, parts, nonce);
}

function whole(title: string, parts: string[], nonce: string): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}';">
<title>${escape(title)}</title>
<style nonce="${nonce}">${STYLE}</style>
</head>
<body>
${parts.join("\n")}
</body>
</html>`;
}

function section(title: string, content: string): string {
  // What scrolls can be scrolled by keys: they need something that has the focus.
  return `<section tabindex="0" aria-label="${escape(title)}"><h2>${escape(title)}</h2>${content}</section>`;
}

function table(heads: string[], rows: string[][]): string {
  const head = heads.map((name) => `<th scope="col">${escape(name)}</th>`).join("");
  const body = rows.map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`).join("");
  return `<table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table>`;
}

/** A list under a heading of its own, where there is anything in it. */
function headed(title: string, items: string[]): string {
  const list = items.map((item) => `<li>${escape(item)}</li>`).join("");
  return items.length > 0 ? `<h3>${escape(title)}</h3><ul>${list}</ul>` : "";
}

function pre(text: string): string {
  return `<pre tabindex="0">${escape(text)}</pre>`;
}

function attemptRow(attempt: Attempt): string[] {
  const gain = attempt.gain ? `${attempt.gain.toFixed(2)}×` : "";
  const interval = attempt.interval ? ` (95%: ${attempt.interval.map((end) => end.toFixed(2)).join(" to ")})` : "";
  const outcome = `<span class="${attempt.outcome === "kept" ? "kept" : "not"}">${escape(attempt.said)}</span>`;
  return [
    String(attempt.number),
    `${escape(attempt.title)}<br><small>${escape(attempt.explanation)}</small>`,
    outcome,
    escape(gain + interval),
  ];
}

function verdict(of: Verdict): string {
  const rows = of.compared.map((compared) =>
    [compared.what, compared.inputs, compared.readAs, `${compared.count}`, `${compared.different}`, `${compared.tolerance}`].map(escape),
  );
  return [
    `<p>${escape(`${of.answer} on ${of.device}; inputs: ${of.inputs}`)}</p>`,
    rows.length > 0 ? table(["compared", "inputs", "read as", "values", "different", "tolerance"], rows) : "",
    headed("Not checked", of.notChecked),
    headed("Notes", of.notes),
  ].join("");
}

function plan(of: PlanEntry["plan"], reason?: string | null): string {
  const tasks = of.tasks.map(({ title, description, expectedGain }) => {
    const more = [description, expectedGain && `Expected: ${expectedGain}`]
      .filter(Boolean)
      .map((text) => `<br><small>${escape(text)}</small>`);
    return `<li>${escape(title)}${more.join("")}</li>`;
  });
  return `<p>${escape(reason ?? of.summary)}</p><ol>${tasks.join("")}</ol>`;
}

function diff(patch: string): string {
  const line = (text: string): string => {
    const kind = text.startsWith("+") ? "added" : text.startsWith("-") ? "removed" : "same";
    return `<span class="${kind}">${escape(text)}</span>`;
  };
  return `<pre tabindex="0">${patch.split("\n").map(line).join("\n")}</pre>`;
}

const STYLE = `
body { color: var(--vscode-foreground); font-family: var(--vscode-font-family); padding: 0 1.5em 2em; max-width: 62em; }
h1 { font-size: 1.5em; margin: .8em 0 .3em; } h2 { font-size: 1.15em; margin: 1.6em 0 .5em; } h3 { font-size: 1em; }
.said { font-size: 1.1em; } .about, small { color: var(--vscode-descriptionForeground); }
section { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92em; }
th, td { text-align: left; vertical-align: top; padding: .3em .9em .3em 0; border-bottom: 1px solid var(--vscode-widget-border, #8884); }
pre { font-family: var(--vscode-editor-font-family); font-size: var(--vscode-editor-font-size); overflow-x: auto; padding: .6em;
  background: var(--vscode-textCodeBlock-background); }
.added { background: var(--vscode-diffEditor-insertedTextBackground); } .removed { background: var(--vscode-diffEditor-removedTextBackground); }
.kept { color: var(--vscode-charts-green); }
`;
