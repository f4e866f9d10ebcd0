/* Pictures from the server: their columns are looked at where they lie in the answer. */
import { unpacked } from "./columns.js";
import { answerOf } from "./picture.js";
/** @import { Answer, Asked } from "./types.js" */

/**
 * The picture of what is asked for; none where the server is gone, is busy or refuses, or where it
 * was given up by its signal.
 * @param {Asked} asked
 * @param {AbortSignal} signal
 * @returns {Promise<Answer | null>}
 */
export async function pictureOf(asked, signal) {
  const headers = { "Content-Type": "application/json" };
  try {
    const answer = await fetch("picture", { method: "POST", headers, body: JSON.stringify(asked), signal });
    return answer.ok ? answerOf(unpacked(await answer.arrayBuffer())) : null;
  } catch {
    return null;
  }
}

/**
 * Why the request of a lane waits at a time, in one sentence; empty where it does not wait.
 * @param {{lane: number, t: number, revision: number | string}} asked
 * @returns {Promise<string>}
 */
export async function sentenceOf(asked) {
  const headers = { "Content-Type": "application/json" };
  try {
    const answer = await fetch("sentence", { method: "POST", headers, body: JSON.stringify(asked) });
    return answer.ok ? (await answer.json()).sentence : "";
  } catch {
    return "";
  }
}
