// Perfetto's trace processor, as its web page ships it, on Node:
//   node perfetto_engine.mjs FOLDER TRACE SQL...
// FOLDER holds engine_bundle.js and trace_processor.wasm. Each query gives rows of one cell of
// JSON text; the rows of every query are printed as one JSON array. With --times before FOLDER, rows
// may be any, and milliseconds are printed: of reading the trace, then of each query, its rows
// counted among it as the engine hands them over. Messages are those of trace_processor.proto:
// TraceProcessorRpcStream, TraceProcessorRpc, QueryArgs, QueryResult.

import { readFileSync } from "node:fs";
import { join } from "node:path";

const isTimed = process.argv[2] === "--times";
const [folder, trace, ...queries] = process.argv.slice(isTimed ? 3 : 2);
const APPEND = 1, FINALIZE = 2, QUERY = 3; // TraceProcessorRpc.method
const CHUNK_BYTES = 1 << 20;
const replies = [];

/** What a browser gives the worker in which the engine runs. */
class FileRequest {
  open(_method, name) { this.name = name; }
  send() { this.response = readFileSync(join(folder, this.name)); }
}
const quiet = { log() {}, warn() {}, error: console.error };
const surroundings = {
  self: { location: { href: "file:///" } },
  process: undefined,
  WorkerGlobalScope: class {},
  XMLHttpRequest: FileRequest,
  console: quiet,
};
const port = { postMessage: (bytes) => replies.push(bytes) };

function varint(number) {
  const bytes = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push((number % 128) | 128);
  return Buffer.from([...bytes, number]);
}
const numberField = (id, number) => Buffer.concat([varint(id * 8), varint(number)]);
const bytesField = (id, bytes) => Buffer.concat([varint(id * 8 + 2), varint(bytes.length), bytes]);

/** Every value of a field of a message. */
function values(message, wanted) {
  const found = [];
  let at = 0;
  const number = () => {
    let value = 0, scale = 1, byte;
    do { byte = message[at++]; value += (byte & 127) * scale; scale *= 128; } while (byte > 127);
    return value;
  };
  while (at < message.length) {
    const key = number();
    const numBytes = { 0: 0, 1: 8, 5: 4 }[key & 7] ?? number();
    const value = key & 7 ? message.subarray(at, at + numBytes) : number();
    at += numBytes;
    if (key >> 3 === wanted) found.push(value);
  }
  return found;
}

function call(method, ...fields) {
  replies.length = 0;
  const message = Buffer.concat([numberField(2, method), ...fields]);
  port.onmessage({ data: new Uint8Array(bytesField(1, message)) });
  return replies.flatMap((reply) => values(Buffer.from(reply), 1));
}

function results(sql) {
  const found = call(QUERY, bytesField(103, bytesField(1, Buffer.from(sql))))
    .flatMap((reply) => values(reply, 203));
  const failure = found.flatMap((result) => values(result, 2)).join("");
  if (failure) throw new Error(failure);
  return found;
}

function query(sql) {
  const cells = results(sql).flatMap((result) => values(result, 3)).flatMap((batch) => values(batch, 5));
  return Buffer.concat(cells).toString().split("\0").filter(Boolean).map((cell) => JSON.parse(cell));
}

const source = readFileSync(join(folder, "engine_bundle.js"), "utf8");
new Function(...Object.keys(surroundings), source)(...Object.values(surroundings));
surroundings.self.onmessage({ data: port });
await new Promise((started) => setTimeout(started, 0));

function milliseconds(act) {
  const began = performance.now();
  act();
  return performance.now() - began;
}

const content = readFileSync(trace);
const reading = milliseconds(() => {
  for (let at = 0; at < content.length; at += CHUNK_BYTES) {
    call(APPEND, bytesField(101, content.subarray(at, at + CHUNK_BYTES)));
  }
  call(FINALIZE);
});
const told = isTimed
  ? [reading, ...queries.map((sql) => milliseconds(() => results(sql)))]
  : queries.map(query);
process.stdout.write(JSON.stringify(told), () => process.exit(0));
