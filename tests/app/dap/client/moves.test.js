/* Forward and back: by steps, by changes, to the ends. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { opened } from "./editor.js";

test("steps go forth and back, and out of one is on to the next", async () => {
  const editor = await opened("before");
  for (const [request, step] of [["next", 2], ["next", 3], ["stepBack", 2], ["stepOut", 3]]) {
    assert.equal((await editor.moved(request)).reason, "step");
    assert.equal(await editor.step(), `step ${step}`);
  }
});

test("a step into is one change, and back by an instruction takes it back", async () => {
  const editor = await opened("before");
  await editor.moved("goto", { targetId: 66 });
  const frames = async () => (await editor.frames()).map(({ name }) => name);
  const before = await frames();
  const changes = [(await editor.moved("stepIn")).text, (await editor.moved("next", { granularity: "instruction" })).text];
  for (const change of changes) assert.match(change, /^(decisions|lifecycle|allocations|batch_rows|steps|queue_order): /);
  for (let at = 0; at < 2; at++) await editor.moved("stepBack", { granularity: "instruction" });
  assert.deepEqual(await frames(), before);
});

test("without stops one goes on to the end and back to the start", async () => {
  const editor = await opened("before");
  const last = await editor.moved("continue");
  assert.match(last.text, /no stop is hit up to the end/);
  assert.equal(await editor.step(), "step 88");
  await editor.moved("next");
  assert.equal(await editor.step(), "step 88");
  await editor.moved("reverseContinue");
  assert.equal(await editor.step(), "step 1");
  await editor.moved("stepBack");
  assert.equal(await editor.step(), "step 1");
});

test("back over the hits of a stop are the hits that were passed, in the other order", async () => {
  const editor = await opened("before");
  await editor.ask("setFunctionBreakpoints", { breakpoints: [{ name: "steps: num_waiting > 38" }] });
  const walked = async (request) => {
    const steps = [];
    while ((await editor.moved(request)).hitBreakpointIds) steps.push(await editor.step());
    return steps;
  };
  const forth = await walked("continue");
  assert.ok(forth.length > 3);
  assert.deepEqual((await walked("reverseContinue")).reverse(), forth);
});

test("a line of the steps can be gone to", async () => {
  const editor = await opened("before");
  const { sources } = await editor.ask("loadedSources");
  const { content } = await editor.ask("source", { sourceReference: sources[0].sourceReference, source: sources[0] });
  assert.match(content.split("\n")[66], /^step 67 /);
  const { targets } = await editor.ask("gotoTargets", { source: sources[0], line: 67 });
  assert.equal((await editor.moved("goto", { targetId: targets[0].id })).reason, "goto");
  assert.equal(await editor.step(), "step 67");
});
