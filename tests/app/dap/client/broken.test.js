/* What no editor should send, and editors that go away. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { GIVEN, opened, openedAlone, started } from "./editor.js";

const framed = (text) => `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
const request = (command, args = {}) => framed(JSON.stringify({ seq: 1, type: "request", command, arguments: args }));
const NO_MESSAGES = {
  "no header": "hello\r\n\r\n",
  "no object": framed("[1]"),
  "no UTF-8": Buffer.concat([Buffer.from("Content-Length: 4\r\n\r\n"), Buffer.from([0x22, 0xff, 0xfe, 0x22])]),
};

test("what is no message ends the talk with one line and a code of its own", async (t) => {
  for (const [what, bytes] of Object.entries(NO_MESSAGES)) {
    const editor = started(t);
    editor.adapter.stdin.end(bytes);
    assert.equal(await editor.exitCode, 2, what);
    assert.match(editor.complaints, /^stepscope: the client: [^\n]+\n$/, what);
  }
});

test("a message in pieces, and two at once, are answered in their order", async (t) => {
  const editor = started(t);
  const bytes = request("initialize") + request("none") + request("disconnect");
  let told = "";
  editor.adapter.stdout.on("data", (said) => (told += said));
  editor.adapter.stdin.write(bytes.slice(0, 30));
  await setImmediate();
  editor.adapter.stdin.end(bytes.slice(30));
  assert.equal(await editor.exitCode, 0);
  assert.deepEqual(told.match(/"command":"\w+"/g).map((each) => each.slice(11, -1)), ["initialize", "none", "disconnect"]);
});

test("requests that nobody should send are refused in a line, and the talk goes on", async () => {
  const editor = await opened("before");
  const huge = 2 ** 70;
  const wrong = [
    ["pause", {}], ["restart", {}], ["variables", { variablesReference: huge }], ["scopes", { frameId: -1 }],
    ["stackTrace", { threadId: huge }], ["continue", { threadId: 0 }], ["next", {}], ["goto", { threadId: 1, targetId: huge }],
    ["gotoTargets", { source: { sourceReference: 1 }, line: huge }], ["source", { sourceReference: huge }],
    ["setExceptionBreakpoints", {}], ["evaluate", { expression: "goto 99999999999999999999999" }],
    ["evaluate", { expression: "select * from nowhere" }], ["evaluate", { expression: "rank --5" }],
    ["evaluate", { expression: "step ²" }], ["evaluate", { expression: "watch block ²" }],
    ["evaluate", { expression: "value dur_ns /" }], ["evaluate", { expression: "\0\u202e" }],
    ["evaluate", { expression: `watch block ${"9".repeat(40)}` }], ["evaluate", { expression: `step ${"9".repeat(5000)}` }],
  ];
  for (const [command, args] of wrong) {
    assert.doesNotMatch(await editor.refused(command, args), /a bug in|\n/, `${command} ${JSON.stringify(args).slice(0, 60)}`);
  }
  assert.equal(await editor.step(), "step 1");
});

test("stops that cannot be met are told one by one", async () => {
  const editor = await opened("before");
  const names = ["", "finding XYZ999", "steps: nothing > 5", "steps: num_waiting >", "steps: 1); drop table steps", `block ${"9".repeat(30)}`];
  const told = await editor.stops("setFunctionBreakpoints", { breakpoints: [{ name: "preempt" }, ...names.map((name) => ({ name }))] });
  assert.deepEqual(told.map(([isVerified]) => isVerified), [true, ...names.map(() => false)]);
  for (const [, message] of told) assert.doesNotMatch(message, /a bug in/);
});

test("a number larger than any is taken for what it is, not for a fault of ours", async () => {
  const editor = await opened("before");
  const { variablesReference } = await editor.scope("waiting");
  for (const page of [{ start: 2 ** 62 }, { start: 2 ** 63 }, { start: 2, count: 2 ** 63 }, { count: 2 ** 62, start: 2 ** 62 }]) {
    const done = await editor.ask("variables", { variablesReference, ...page }).catch(({ message }) => message);
    assert.doesNotMatch(String(done), /a bug in/);
  }
});

test("a number of a message that nobody can count to is answered", async (t) => {
  const editor = started(t);
  let told = "";
  editor.adapter.stdout.on("data", (said) => (told += said));
  editor.adapter.stdin.end(framed('{"seq":1e400,"type":"request","command":"initialize"}') + framed(`{"seq":${"9".repeat(30)},"type":"request","command":"initialize"}`) + framed('{"seq":1.5,"type":"event"}'));
  const code = await editor.exitCode;
  assert.match(editor.complaints, /^(stepscope: the client: [^\n]+\n)?$/);
  assert.ok(code === 0 || code === 2, editor.complaints);
  assert.doesNotMatch(told, /a bug in/);
});

test("a client that closes its end between two messages ends the process without a word", async (t) => {
  const editor = await openedAlone(t, "before");
  editor.adapter.stdin.end();
  assert.equal(await editor.exitCode, 0);
  assert.equal(editor.complaints, "");
});

test("a client that goes away within a message is told of in a line", async (t) => {
  const editor = await openedAlone(t, "before");
  editor.adapter.stdin.end("Content-Length: 50\r\n\r\n{");
  assert.equal(await editor.exitCode, 2);
  assert.equal(editor.complaints.split("\n").length, 2);
});

test("a client that asks and does not listen any more ends the process without a word", async (t) => {
  const editor = await openedAlone(t, "before");
  editor.adapter.stdout.destroy();
  for (let at = 0; at < 20; at++) editor.adapter.stdin.write(request("source", { sourceReference: 1 }));
  assert.equal(await editor.exitCode, 0);
  assert.equal(editor.complaints, "");
});

test("a client of a port that breaks off ends the process without a word", async (t) => {
  const editor = started(t, GIVEN.traces.before, "--port", "0");
  const socket = connect(await editor.port(), "127.0.0.1");
  await once(socket, "connect");
  socket.write(request("initialize") + request("launch") + request("source", { sourceReference: 1 }));
  await once(socket, "data");
  socket.resetAndDestroy();
  assert.equal(await editor.exitCode, 0);
  assert.match(editor.complaints, /^listening on [^\n]+\n$/);
});
