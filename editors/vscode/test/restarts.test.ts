// Restarts come one after the other, and those asked for meanwhile are one.
import * as assert from "node:assert/strict";
import { test } from "node:test";
import { Restarts } from "../src/restarts";

test("restarts never overlap, and the last one asked for is done", async () => {
  let running = 0;
  let done = 0;
  const restarts = new Restarts(async () => {
    running += 1;
    assert.equal(running, 1);
    await new Promise((resolve) => setTimeout(resolve, 5));
    running -= 1;
    done += 1;
  });
  await Promise.all([restarts.request(), restarts.request(), restarts.request()]);
  assert.equal(done, 2, "the first, and one for the two that came while it ran");
  await restarts.request();
  assert.equal(done, 3);
});

test("one that fails does not keep the next from being done", async () => {
  let count = 0;
  const restarts = new Restarts(() => {
    count += 1;
    return count === 1 ? Promise.reject(new Error("the first")) : Promise.resolve();
  });
  const first = restarts.request();
  const second = restarts.request();
  await assert.rejects(first);
  await second;
  assert.equal(count, 2);
});

test("it is settled when none is under way and none is asked for", async () => {
  let done = 0;
  const restarts = new Restarts(async () => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    done += 1;
    if (done === 1) {
      throw new Error("the first");
    }
  });
  await restarts.settled();
  void restarts.request().catch(() => {});
  void restarts.request();
  await restarts.settled();
  assert.equal(done, 2);
});
