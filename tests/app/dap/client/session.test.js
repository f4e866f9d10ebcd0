/* A session from its first message to its last. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GIVEN, openedAlone, started } from "./editor.js";

const { before, after, ranks } = GIVEN.traces;

test("an editor learns what can be done, opens a trace, stands at its first step and leaves", async (t) => {
  const editor = started(t).overPipes();
  const { body } = await editor.initializeRequest();
  for (const name of ["ConfigurationDoneRequest", "StepBack", "ConditionalBreakpoints", "FunctionBreakpoints", "DataBreakpoints"]) {
    assert.equal(body[`supports${name}`], true, name);
  }
  assert.deepEqual(body.exceptionBreakpointFilters.map(({ filter }) => filter), ["error", "warning", "info"]);

  await editor.until("initialized", "launch", { trace: before });
  const stopped = await editor.until("stopped", "configurationDone");
  assert.deepEqual([stopped.reason, stopped.threadId, stopped.allThreadsStopped], ["entry", 1, true]);
  assert.deepEqual(await editor.ask("threads"), { threads: [{ id: 1, name: "rank 0" }] });

  await editor.disconnectRequest();
  assert.equal(await editor.exitCode, 0);
  assert.equal(editor.complaints, "");
});

test("an editor that asks for its sequence at once gets it, as the client's own helpers do", async (t) => {
  const editor = started(t).overPipes();
  await Promise.all([
    editor.configurationSequence(),
    editor.launch({ trace: before }),
    editor.assertStoppedLocation("entry", { column: 1 }),
  ]);
});

test("a trace that cannot be opened is told, and another one may follow", async (t) => {
  const editor = started(t).overPipes();
  await editor.initializeRequest();
  for (const trace of [`${before}/none`, "", "/", "a\0b", "x".repeat(5000)]) {
    const said = await editor.refused("launch", { trace });
    assert.doesNotMatch(said, /a bug in|\n/, JSON.stringify(trace).slice(0, 20));
  }
  assert.match(await editor.refused("launch", {}), /names no trace/);
  assert.match(await editor.refused("launch", { trace: 5 }), /^arguments: /);
  assert.match(await editor.refused("threads"), /no trace is open/);
  await editor.until("initialized", "launch", { trace: before });
  await editor.until("stopped", "configurationDone");
});

test("a trace that is launched in place of another leaves nothing of it", async (t) => {
  const editor = await openedAlone(t, "before");
  await editor.ask("setFunctionBreakpoints", { breakpoints: [{ name: "finding KVB003" }] });
  await editor.until("initialized", "launch", { trace: after });
  await editor.until("stopped", "configurationDone");
  const stopped = await editor.moved("continue");
  assert.match(stopped.text, /no stop is hit/);
  assert.equal(await editor.step(), "step 202");
});

test("a trace of the command line needs no name, and the rank to begin with may be said", async (t) => {
  const editor = started(t, ranks).overPipes();
  assert.equal((await editor.open({ rank: 1 })).threadId, 2);
  assert.match(await editor.refused("launch", { rank: 7 }), /no rank 7/);
});

test("to terminate is told as an event, and to disconnect ends the process", async (t) => {
  const editor = await openedAlone(t, "before");
  await editor.until("terminated", "terminate");
  assert.equal(await editor.step(), "step 1");
  await editor.disconnectRequest();
  assert.equal(await editor.exitCode, 0);
});

test("over a port of this machine everything is as over pipes", async (t) => {
  const editor = started(t, before, "--port", "0");
  await editor.start(await editor.port());
  await editor.open({});
  await editor.ask("setFunctionBreakpoints", { breakpoints: [{ name: "finding KVB003" }] });
  await editor.moved("continue");
  assert.equal(await editor.step(), "step 67");
  await editor.disconnectRequest();
  assert.equal(await editor.exitCode, 0);
  assert.match(editor.complaints, /^listening on [^\n]+\n$/);
});

test("an editor that counts lines and columns from 0 is answered so", async (t) => {
  const editor = started(t).overPipes();
  await editor.initializeRequest({ adapterID: "stepscope", linesStartAt1: false, columnsStartAt1: false });
  await editor.until("initialized", "launch", { trace: before });
  await editor.until("stopped", "configurationDone");
  const frame = (await editor.frames()).at(-1);
  assert.deepEqual([frame.line, frame.column], [0, 0]);

  await editor.ask("setBreakpoints", { source: frame.source, breakpoints: [{ line: 4 }] });
  await editor.moved("continue");
  assert.deepEqual([await editor.step(), (await editor.frames()).at(-1).line], ["step 5", 4]);
  const { targets } = await editor.ask("gotoTargets", { source: frame.source, line: 8 });
  await editor.moved("goto", { targetId: targets[0].id });
  assert.equal(await editor.step(), "step 9");
  const completed = await editor.ask("completions", { text: "go", column: 2 });
  assert.deepEqual(completed.targets.map(({ label }) => label), ["goto"]);
});
