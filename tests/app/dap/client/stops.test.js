/* Where to stop: at a line, at what has a name, at what changes, at findings. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { opened } from "./editor.js";

const SOURCE = { sourceReference: 1 };

test("a line of the steps stops, and one with a condition where that holds", async () => {
  const editor = await opened("before");
  const lines = [{ line: 5 }, { line: 6, condition: "num_waiting < 0" }, { line: 67, condition: "num_waiting > 20" }, { line: 999 }];
  const told = await editor.stops("setBreakpoints", { source: SOURCE, breakpoints: lines });
  assert.deepEqual(told.map(([isVerified]) => isVerified), [true, true, true, false]);
  assert.deepEqual(told.slice(0, 3).map(([, message]) => message), ["1 hit", "0 hits", "1 hit"]);
  assert.match(told[3][1], /no step is at line 999/);

  assert.equal((await editor.moved("continue")).reason, "breakpoint");
  assert.equal((await editor.frames()).at(-1).line, 5);
  await editor.moved("continue");
  assert.equal((await editor.frames()).at(-1).line, 67);
  await editor.moved("reverseContinue");
  assert.equal((await editor.frames()).at(-1).line, 5);
});

test("a condition that is none is told beside its line, and the others hold", async () => {
  const editor = await opened("before");
  const lines = [{ line: 5, condition: "num_waiting <" }, { line: 5, condition: "no_column = 1" }, { line: 5 }];
  const told = await editor.stops("setBreakpoints", { source: SOURCE, breakpoints: lines });
  assert.deepEqual(told.map(([isVerified]) => isVerified), [false, false, true]);
});

test("a line of the policy's file stops where decisions were taken at it, and the frames lead there", async () => {
  const editor = await opened("before");
  await editor.moved("goto", { targetId: 67 });
  const [top] = await editor.frames();
  assert.match(top.source.path, /engine.schedulers.bucketed\.py$/);
  await editor.moved("goto", { targetId: 1 });

  const breakpoints = [{ line: top.line, condition: "subject = 'req-17'" }, { line: 1 }];
  const told = await editor.stops("setBreakpoints", { source: top.source, breakpoints });
  assert.deepEqual(told.map(([isVerified]) => isVerified), [true, false]);
  assert.match(told[1][1], /no decision was taken at line 1; some were at /);
  const stopped = await editor.moved("continue");
  assert.deepEqual([stopped.reason, stopped.hitBreakpointIds.length], ["breakpoint", 1]);
  const frames = await editor.frames();
  assert.deepEqual([frames[0].name, frames[0].line, frames[0].source], [top.name, top.line, top.source]);
  assert.match(frames.at(-2).name, /subject=req-17/);
});

test("a file in which nothing was decided cannot be stopped in, and says why", async () => {
  const editor = await opened("before");
  for (const path of ["/policy.py", "bucketed.py", "a\0b", `${process.cwd()}/none.py`]) {
    const [[isVerified, message]] = await editor.stops("setBreakpoints", { source: { path }, breakpoints: [{ line: 3 }] });
    assert.equal(isVerified, false);
    assert.match(message, /no decision was taken in this file, but in engine\/schedulers\/bucketed\.py/);
  }
});

test("a function breakpoint takes what break takes, and a table a condition", async () => {
  const editor = await opened("before");
  const breakpoints = [
    { name: "finding KVB003" }, { name: "preempt req-01" }, { name: "step 70" },
    { name: "steps", condition: "num_waiting > 38" }, { name: "lifecycle: event = 'preempt'", condition: "request = 'req-01'" },
    { name: "preempt", condition: "request = 'req-01'" }, { name: "step 70 to 80" },
  ];
  const told = await editor.stops("setFunctionBreakpoints", { breakpoints });
  assert.deepEqual(told.map(([isVerified]) => isVerified), [true, true, true, true, true, false, false]);
  assert.equal(told[1][1], told[4][1]);

  const stopped = await editor.moved("continue");
  assert.equal(stopped.reason, "function breakpoint");
  assert.equal(stopped.hitBreakpointIds.length, 1);
});

test("stops that were set again take the place of those before, each kind for itself", async () => {
  const editor = await opened("before");
  await editor.ask("setBreakpoints", { source: SOURCE, breakpoints: [{ line: 5 }] });
  await editor.ask("setFunctionBreakpoints", { breakpoints: [{ name: "step 7" }] });
  await editor.ask("setFunctionBreakpoints", { breakpoints: [{ name: "step 9" }] });
  const steps = [];
  for (let at = 0; at < 2; at++) {
    await editor.moved("continue");
    steps.push(await editor.step());
  }
  assert.deepEqual(steps, ["step 5", "step 9"]);
  await editor.ask("setBreakpoints", { source: SOURCE, breakpoints: [] });
  await editor.moved("reverseContinue");
  assert.equal(await editor.step(), "step 1");
});

test("a block is watched by its words or as a variable of the state", async () => {
  const editor = await opened("before");
  await editor.moved("goto", { targetId: 67 });
  const { variablesReference } = await editor.scope("blocks");
  const [{ name }] = await editor.ask("variables", { variablesReference, start: 0, count: 1 }).then(({ variables }) => variables);
  const of_state = await editor.ask("dataBreakpointInfo", { variablesReference, name });
  assert.equal(of_state.dataId, `block ${name}`);
  const { dataId, accessTypes } = await editor.ask("dataBreakpointInfo", { name: "block 2" });
  assert.deepEqual([dataId, accessTypes], ["block 2", ["write"]]);
  const none = await editor.ask("dataBreakpointInfo", { name: "nothing at all" });
  assert.equal(none.dataId, null);

  await editor.ask("setDataBreakpoints", { breakpoints: [{ dataId }] });
  const stopped = await editor.moved("reverseContinue");
  assert.equal(stopped.reason, "data breakpoint");
  assert.match(stopped.text, /op=release .*id=2 owner=req-01/);
});

test("findings of a severity stop as exceptions do, and tell what was found", async () => {
  const editor = await opened("before");
  const told = await editor.stops("setExceptionBreakpoints", { filters: ["warning", "fatal"] });
  assert.deepEqual(told.map(([isVerified]) => isVerified), [true, false]);
  const stopped = await editor.moved("continue");
  assert.equal(stopped.reason, "exception");
  const { exceptionId, description, breakMode } = await editor.ask("exceptionInfo", { threadId: 1 });
  assert.match(exceptionId, /^[A-Z]{3}\d{3}$/);
  assert.ok(stopped.text.includes(exceptionId));
  assert.ok(description.length > 10);
  assert.equal(breakMode, "always");

  await editor.moved("next");
  assert.match(await editor.refused("exceptionInfo", { threadId: 1 }), /no finding/);
  await editor.ask("setExceptionBreakpoints", { filters: [] });
  assert.match((await editor.moved("continue")).text, /no stop is hit/);
});
