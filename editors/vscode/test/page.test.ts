// The page of a run: everything a model or a program wrote is text in it, and it may load nothing.
import * as assert from "node:assert/strict";
import { test } from "node:test";
import { escape, page, verdictPage } from "../src/page";
import type { Report, Verdict } from "../src/report";

const EVIL = `<script>alert(1)</script><img src=x onerror="alert('2')">`;

function verdict(text: string): Verdict {
  return {
    reference: text,
    candidate: text,
    answer: text,
    device: text,
    inputs: text,
    notChecked: [text],
    notes: [text],
    compared: [{ what: text, inputs: text, readAs: text, count: 1, different: 0, tolerance: 1e-4 }],
    findings: [{ code: text, severity: text, message: text, advice: text }],
  };
}

function report(text: string): Report {
  return {
    folder: text,
    manifest: { id: text, started: text, target: text, device: text, engine: text, model: text },
    history: [
      { entry: "baseline", profile: text, seconds: 1 },
      { entry: "plan", plan: { summary: text, tasks: [{ title: text, description: text }] }, reason: text },
      {
        entry: "attempt",
        number: 1,
        title: text,
        outcome: text,
        said: text,
        explanation: text,
        gain: 1.5,
        interval: [1.2, 1.8],
        profile: text,
        seconds: 1,
        verdict: {
          ...verdict(text),
        },
      },
      { entry: "conclusion", best: 1, gain: 1.5, said: text },
    ],
    patch: `+${text}\n-${text}\n ${text}`,
  };
}

test("no text of a run becomes an element", () => {
  const html = page(report(EVIL), "n");
  assert.ok(!/<(script|img|link|iframe)/i.test(html));
  assert.ok(!/<[^>]*\son\w+=/i.test(html), "no element has a handler");
  // Every place that a text comes to is a place where it is shown.
  assert.ok(html.split(escape(EVIL)).length > 20);
});

test("no text of a verdict becomes an element, and all of it is there", () => {
  const html = verdictPage(verdict(EVIL), EVIL, "n");
  assert.ok(!/<(script|img|link|iframe)/i.test(html));
  assert.equal(html.split(escape(EVIL)).length - 1, 16);
  assert.match(html, /content="default-src 'none'; style-src 'nonce-n';"/);
});

test("what was looked at is not said to be unchecked", () => {
  const of: Verdict = { ...verdict("t"), notChecked: ["no GPU ran it"], notes: ["races were looked for"] };
  const html = verdictPage(of, "t", "n");
  assert.match(html, /<h3>Not checked<\/h3><ul><li>no GPU ran it<\/li><\/ul><h3>Notes<\/h3><ul><li>races were looked for<\/li><\/ul>/);
  assert.ok(!verdictPage({ ...of, notes: [] }, "t", "n").includes("Notes"));
});

test("a plan of which nothing was tried has no table of attempts", () => {
  const whole = report("t");
  const only: Report = { ...whole, history: whole.history.filter((entry) => entry.entry !== "attempt"), patch: null };
  const html = page(only, "n");
  assert.ok(!html.includes("<h2>Attempts</h2>") && html.includes("<li>t"));
});

test("the page loads nothing, and runs nothing", () => {
  const html = page(report("t"), "abc");
  assert.match(html, /content="default-src 'none'; style-src 'nonce-abc';"/);
  assert.ok(!/https?:/.test(html));
  assert.match(html, /1\.50× \(95%: 1\.20 to 1\.80\)/);
});

test("a run that is not at its end has a page too", () => {
  const half: Report = { ...report("t"), history: [], patch: null };
  assert.match(page(half, "n"), /not at its end/);
});

test("each column has a name, and what scrolls can be reached by keys", () => {
  const pages = [page(report("text"), "n"), verdictPage(verdict("text"), "said", "n")];
  for (const html of pages) {
    const heads = [...html.matchAll(/<th([^>]*)>([^<]*)<\/th>/g)];
    assert.ok(heads.length > 0);
    for (const [, attributes, name] of heads) {
      assert.equal(attributes, ' scope="col"');
      assert.notEqual(name?.trim(), "");
    }
    const scrolls = [...html.matchAll(/<(section|pre)\b([^>]*)>/g)];
    assert.ok(scrolls.length > 0);
    scrolls.forEach(([, , attributes]) => assert.match(attributes ?? "", /tabindex="0"/));
  }
});
