/* Four stories, as an editor tells them: what is expected of each front is in stories.py. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GIVEN, opened } from "./editor.js";

const TOLD = GIVEN.stories;

/** Frames of the rank that stopped, above its step. */
const above = async (editor) => (await editor.frames()).slice(0, -1).map(({ name }) => name);

test("find a conflict", async () => {
  const editor = await opened("before");
  const stops = await editor.stops("setFunctionBreakpoints", { breakpoints: [{ name: TOLD.TAKEN_AWAY }] });
  assert.deepEqual(stops, [[true, `${TOLD.NUM_TAKEN_AWAY} hits`]]);
  const stopped = await editor.moved("continue");
  assert.ok(stopped.text.includes(TOLD.FIRST_ROW), stopped.text);
  assert.equal(await editor.step(), `step ${TOLD.FIRST_STEP}`);
  assert.ok((await above(editor)).some((name) => name.includes(`verdict=${TOLD.VERDICT} subject=req-01 reason=${TOLD.REASON}`)));

  await editor.ask("setFunctionBreakpoints", { breakpoints: [] });
  await editor.ask("setExceptionBreakpoints", { filters: ["error", "warning"] });
  let found = {};
  while (found.exceptionId !== TOLD.FOUND) {
    assert.equal((await editor.moved("continue")).reason, "exception");
    found = await editor.ask("exceptionInfo", { threadId: 1 });
  }
  assert.equal(await editor.step(), `step ${TOLD.FOUND_AT}`);
  assert.match(found.description, new RegExp(`^${TOLD.NUM_FOUND_FIRST} .*${TOLD.REASON}`));
});

test("ask why one waits", async () => {
  const editor = await opened("before");
  const { sources } = await editor.ask("loadedSources");
  const { targets } = await editor.ask("gotoTargets", { source: sources[0], line: TOLD.WAITS_AT });
  await editor.moved("goto", { targetId: targets[0].id });
  const why = await editor.say(TOLD.WHO, "hover");
  for (const line of [TOLD.CAUSE, TOLD.WHY]) assert.ok(why.includes(line), why);

  const { variablesReference } = await editor.scope("waiting");
  const { variables } = await editor.ask("variables", { variablesReference });
  const who = variables.find(({ name }) => name === TOLD.WHO);
  const cells = (await editor.ask("variables", { variablesReference: who.variablesReference })).variables;
  const told = Object.fromEntries(cells.map(({ name, value }) => [name, value]));
  assert.deepEqual([told.verdict, told.reason, told.holder], [TOLD.VERDICT, TOLD.REASON, TOLD.HOLDER]);
});

test("go back to who took the block", async () => {
  const editor = await opened("before");
  await editor.moved("goto", { targetId: TOLD.LAST_STEP });
  const { dataId } = await editor.ask("dataBreakpointInfo", { name: TOLD.WATCHED.replace("watch ", "") });
  await editor.ask("setDataBreakpoints", { breakpoints: [{ dataId }] });
  for (const [, at, row] of [TOLD.TAKEN, TOLD.LOST]) {
    const stopped = await editor.moved("reverseContinue");
    assert.ok(stopped.text.includes(row), stopped.text);
    assert.equal(await editor.step(), at.replace(/ of .*/, ""));
  }
});

test("see what the fix would have changed: in the run that was run again with it nothing is found", async () => {
  const before = await opened("before");
  const batch = async (editor) => {
    await editor.moved("goto", { targetId: TOLD.DIVERGED_AT });
    const { variablesReference } = await editor.scope("batch");
    return (await editor.ask("variables", { variablesReference })).variables.map(({ name }) => name);
  };
  const was = await batch(before);
  const editor = await opened("fixed");
  const is = await batch(editor);
  assert.deepEqual([was, is].map((names) => names[TOLD.DIVERGED_ROW]), [TOLD.DIVERGED_FROM, TOLD.DIVERGED_TO]);

  const names = [TOLD.TAKEN_AWAY, "finding", ...Object.keys(TOLD.FOUND_BEFORE).map((code) => `finding ${code}`)];
  const stops = await editor.stops("setFunctionBreakpoints", { breakpoints: names.map((name) => ({ name })) });
  assert.deepEqual(stops, names.map(() => [true, "0 hits"]));
  assert.match((await editor.moved("continue")).text, /no stop is hit/);
  assert.equal(await editor.step(), `step ${TOLD.FIXED_STEPS}`);
});
