/* Microsoft's test client, and a `stepscope dap` of its own behind it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after } from "node:test";
import testsupport from "@vscode/debugadapter-testsupport";

/** What the test that runs these gives them: the command that starts stepscope, and traces by name. */
export const GIVEN = JSON.parse(process.argv[2]);
const PATIENCE_MS = 180_000;

export class Editor extends testsupport.DebugClient {
  constructor(...words) {
    super("", "", "stepscope");
    this.defaultTimeout = PATIENCE_MS;
    const [command, ...first] = GIVEN.command;
    this.adapter = spawn(command, [...first, "dap", ...words], { stdio: "pipe" });
    this.complaints = "";
    this.adapter.stderr.on("data", (said) => (this.complaints += said));
    this.adapter.stdin.on("error", () => {}); // of an adapter that has ended
    this.exitCode = once(this.adapter, "close").then(([code]) => code);
  }

  /** Talk over stdin and stdout. */
  overPipes() {
    this.connect(this.adapter.stdout, this.adapter.stdin);
    return this;
  }

  /** The port that it says it listens on. */
  async port() {
    while (!this.complaints.includes("\n")) await once(this.adapter.stderr, "data");
    return Number(/^listening on 127\.0\.0\.1:(\d+)\n$/.exec(this.complaints)[1]);
  }

  /** Send a request, and wait for the event that follows its answer. */
  async until(event, request, args) {
    const [told] = await Promise.all([this.waitForEvent(event), this.send(request, args)]);
    return told.body;
  }

  /** Move, and tell where it stopped. */
  moved(request, args = {}) {
    return this.until("stopped", request, { threadId: 1, ...args });
  }

  async ask(request, args) {
    return (await this.send(request, args)).body;
  }

  /** The message of a request that has to fail. */
  async refused(request, args) {
    const done = await this.send(request, args).then(
      () => null,
      ({ message }) => message,
    );
    if (done === null) throw new Error(`${request} was not refused`);
    return done;
  }

  async frames(threadId = 1) {
    return (await this.ask("stackTrace", { threadId })).stackFrames;
  }

  /** The name of the frame below all: the step. */
  async step(threadId = 1) {
    return (await this.frames(threadId)).at(-1).name;
  }

  async scope(name, threadId = 1) {
    const frame = (await this.frames(threadId)).at(-1);
    const { scopes } = await this.ask("scopes", { frameId: frame.id });
    return scopes.find((scope) => scope.name === name);
  }

  async say(expression, context = "repl", more = {}) {
    return (await this.ask("evaluate", { expression, context, ...more })).result;
  }

  /** What became of stops: of each whether it can be met, and what is said of it. */
  async stops(request, args) {
    const { breakpoints } = await this.ask(request, args);
    return breakpoints.map(({ verified, message }) => [verified, message]);
  }

  async open(launch) {
    await this.initializeRequest();
    await this.until("initialized", "launch", launch);
    return this.until("stopped", "configurationDone");
  }

  leave() {
    this.adapter.kill();
    return this.exitCode;
  }
}

/** An editor whose adapter is ended behind the test. */
export function started(test, ...words) {
  const editor = new Editor(...words);
  test.after(() => editor.leave());
  return editor;
}

/** An editor with an adapter of its own, which has opened a trace. */
export async function openedAlone(test, name) {
  const editor = started(test).overPipes();
  await editor.open({ trace: GIVEN.traces[name] });
  return editor;
}

let shared = null;
after(() => shared?.leave());

/** An editor that stands at the first step of a trace; the adapter has opened others before it. */
export async function opened(name) {
  shared ??= new Editor().overPipes();
  shared.removeAllListeners("stopped");
  await shared.open({ trace: GIVEN.traces[name] });
  return shared;
}
