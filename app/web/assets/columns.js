/* A line of JSON and the columns behind it, as the server packs what has columns. */

/** Where a column lies behind the line, and how many bytes it has.
 * @typedef {[number, number]} Place */

/** @typedef {{head: any, bytes: (place: Place) => Uint8Array, floats: (place: Place) => Float64Array}} Unpacked */

/**
 * The line, and what looks at columns where they lie: none of them is copied.
 * @param {ArrayBuffer} all
 * @returns {Unpacked}
 */
export function unpacked(all) {
  const behind = new Uint8Array(all).indexOf(10) + 1;
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(all, 0, behind)));
  return {
    head,
    bytes: ([at, size]) => new Uint8Array(all, behind + at, size),
    floats: ([at, size]) => new Float64Array(all, behind + at, size / Float64Array.BYTES_PER_ELEMENT),
  };
}
