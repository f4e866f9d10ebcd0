/* Ranks are threads: each has its steps, and one moves while the others follow by time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { opened } from "./editor.js";

test("each rank is a thread, and has a source of its own steps", async () => {
  const editor = await opened("ranks");
  const { threads } = await editor.ask("threads");
  assert.deepEqual(threads, [{ id: 1, name: "rank 0" }, { id: 2, name: "rank 1" }]);
  const { sources } = await editor.ask("loadedSources");
  assert.deepEqual(sources.map(({ name }) => name), ["steps of rank 0", "steps of rank 1"]);
  for (const source of sources) {
    const { content } = await editor.ask("source", { sourceReference: source.sourceReference });
    assert.match(content, /^step \d+ /);
  }
  assert.match(await editor.refused("stackTrace", { threadId: 3 }), /no thread 3/);
});

test("a rank moves by its thread, and the other one is where it was at that time", async () => {
  const editor = await opened("ranks");
  const stopped = await editor.moved("next", { threadId: 2 });
  assert.equal(stopped.threadId, 2);
  const here = await editor.step(2);
  const other = await editor.step(1);
  await editor.moved("next", { threadId: 2 });
  assert.notEqual(await editor.step(2), here);
  await editor.moved("stepBack", { threadId: 2 });
  assert.deepEqual([await editor.step(2), await editor.step(1)], [here, other]);
});

test("a line of a rank's steps stops that rank alone", async () => {
  const editor = await opened("ranks");
  const { sources } = await editor.ask("loadedSources");
  await editor.ask("setBreakpoints", { source: sources[1], breakpoints: [{ line: 3 }] });
  await editor.ask("setBreakpoints", { source: sources[0], breakpoints: [{ line: 2 }] });
  const stops = [];
  for (let at = 0; at < 2; at++) {
    const { threadId } = await editor.moved("continue");
    const frame = (await editor.frames(threadId)).at(-1);
    stops.push([threadId, frame.line, frame.source.sourceReference]);
  }
  assert.deepEqual(stops, [[1, 2, 1], [2, 3, 2]]);
});

test("every rank has its own state", async () => {
  const editor = await opened("ranks");
  await editor.until("stopped", "evaluate", { expression: "goto 50%", context: "repl" });
  const batches = [];
  for (const threadId of [1, 2]) {
    const { variablesReference } = await editor.scope("batch", threadId);
    batches.push((await editor.ask("variables", { variablesReference })).variables.map(({ name }) => name));
  }
  assert.ok(batches.every((names) => names.length > 0));
  assert.notDeepEqual(batches[0], batches[1]);
});

test("what is typed at a frame of another rank is about that rank, and moves that one", async () => {
  const editor = await opened("ranks");
  const [{ id: frameId }] = await editor.frames(2);
  assert.match(await editor.say("where", "repl", { frameId }), /^rank 1 /);
  assert.match(await editor.say("where"), /^rank 0 /);
  const steps = await editor.step(2);
  const stopped = await editor.until("stopped", "evaluate", { expression: "step", context: "repl", frameId });
  assert.equal(stopped.threadId, 2);
  assert.notEqual(await editor.step(2), steps);
});

test("a stop that is set at a frame of another rank moves nothing", async () => {
  const editor = await opened("ranks");
  let num = 0;
  editor.on("stopped", () => (num += 1));
  const [{ id: frameId }] = await editor.frames(2);
  await editor.say("break steps: num_running >= 0", "repl", { frameId });
  assert.match(await editor.say("where"), /^rank 0 /);
  assert.equal(num, 0);
});
