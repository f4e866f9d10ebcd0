/* What was so: stack, state in pages, and what is asked about it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { opened } from "./editor.js";

async function at67() {
  const editor = await opened("before");
  await editor.moved("goto", { targetId: 67 });
  return editor;
}

test("a stack is the last decision of the step, and the step, and may be asked for in parts", async () => {
  const editor = await at67();
  const all = await editor.ask("stackTrace", { threadId: 1 });
  assert.equal(all.totalFrames, all.stackFrames.length);
  assert.match(all.stackFrames.at(-2).name, /^verdict=/);
  assert.equal(all.stackFrames.at(-1).name, "step 67");
  const last = await editor.ask("stackTrace", { threadId: 1, startFrame: all.totalFrames - 1, levels: 1 });
  assert.deepEqual(last.stackFrames.map(({ name }) => name), ["step 67"]);
});

test("scopes are sides of the state, those that the trace does not tell are left out", async () => {
  const editor = await at67();
  const names = (await editor.ask("scopes", { frameId: (await editor.frames())[0].id })).scopes.map(({ name }) => name);
  for (const name of ["waiting", "running", "batch", "blocks"]) assert.ok(names.includes(name), name);
  assert.ok(!names.includes("slots"));
});

test("a scope is read in pages, each as it is in the whole", async () => {
  const editor = await at67();
  const { variablesReference, indexedVariables } = await editor.scope("waiting");
  const read = async (more) => (await editor.ask("variables", { variablesReference, ...more })).variables;
  const all = await read({});
  assert.deepEqual([all.length, indexedVariables], [39, 39]);
  const paged = [];
  for (let start = 0; start < 39; start += 10) paged.push(...(await read({ filter: "indexed", start, count: 10 })));
  assert.deepEqual(paged.map(({ name, value }) => [name, value]), all.map(({ name, value }) => [name, value]));
  assert.deepEqual(await read({ filter: "named" }), []);
  assert.deepEqual(await read({ start: 39, count: 10 }), []);
});

test("a row of the state has its cells below it, and what is unknown is not recorded", async () => {
  const editor = await at67();
  const { variablesReference } = await editor.scope("waiting");
  const [first] = (await editor.ask("variables", { variablesReference, start: 28, count: 1 })).variables;
  assert.equal(first.name, "req-01");
  const cells = (await editor.ask("variables", { variablesReference: first.variablesReference })).variables;
  assert.deepEqual(cells.find(({ name }) => name === "holder"), { name: "holder", value: "req-30", variablesReference: 0 });
  const { variablesReference: all } = await editor.scope("requests");
  const values = (await editor.ask("variables", { variablesReference: all })).variables.map(({ value }) => value);
  assert.ok(values.every((value) => !value.includes("None")));
});

test("numbers of what was shown are worth nothing once the debugger has moved", async () => {
  const editor = await at67();
  const { variablesReference } = await editor.scope("waiting");
  await editor.moved("next");
  assert.match(await editor.refused("variables", { variablesReference }), /is shown/);
});

test("the console answers commands, SQL and names of requests, and moves", async () => {
  const editor = await at67();
  assert.match(await editor.say("why"), /req-/);
  assert.equal(await editor.say("req-01"), await editor.say("why req-01"));
  const { result, variablesReference, indexedVariables } = await editor.ask("evaluate", { expression: "select step from steps order by step", context: "repl" });
  assert.match(result, /^step\n/);
  const [rows] = (await editor.ask("variables", { variablesReference })).variables;
  assert.deepEqual([rows.name, rows.value, rows.indexedVariables], ["rows", "88 items", 88]);
  assert.equal(indexedVariables, undefined);
  const page = (await editor.ask("variables", { variablesReference: rows.variablesReference, filter: "indexed", start: 80, count: 5 })).variables;
  assert.deepEqual(page.map(({ name, value }) => `${name} ${value}`), [80, 81, 82, 83, 84].map((at) => `[${at}] step=${at + 1}`));

  const stopped = await editor.until("stopped", "evaluate", { expression: "goto 5", context: "repl" });
  assert.equal(stopped.reason, "goto");
  assert.equal(await editor.step(), "step 5");
});

test("a hover and a watch look and neither move nor change a stop", async () => {
  const editor = await at67();
  let num = 0;
  editor.on("stopped", () => (num += 1));
  for (const context of ["hover", "watch", "variables", "clipboard"]) {
    for (const expression of ["goto 5", "delete", "break step 3", "mark here", "rwatch block 2", "step", "rank 0"]) {
      assert.match(await editor.refused("evaluate", { expression, context }), /type it into the debug console/);
    }
    assert.match(await editor.say("req-01", context), /req-01/);
  }
  assert.equal(await editor.step(), "step 67");
  assert.equal(num, 0);
});

test("what goes wrong in the console is one line", async () => {
  const editor = await at67();
  for (const expression of ["gto 5", "goto 999", "select nothing from steps", "why req-99", "watch block"]) {
    assert.doesNotMatch(await editor.refused("evaluate", { expression, context: "repl" }), /\n|a bug in/);
  }
});

test("what was typed is completed where the cursor is", async () => {
  const editor = await at67();
  const labels = async (text) => (await editor.ask("completions", { text, column: text.length + 1 })).targets;
  assert.deepEqual((await labels("got")).map(({ label, start, length }) => [label, start, length]), [["goto", 0, 3]]);
  assert.ok((await labels("why req-0")).some(({ label }) => label === "req-01"));
});
