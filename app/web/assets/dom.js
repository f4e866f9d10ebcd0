/* Elements of the page: text nodes only, whatever a trace calls its things. */

/**
 * The element of an id, which is there.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found;
}

/** @returns {HTMLCanvasElement} */
export const canvas = () => /** @type {HTMLCanvasElement} */ (byId("canvas"));

/**
 * @param {string} tag
 * @param {string} kind
 * @param {string} text
 */
export function element(tag, kind, text) {
  const made = document.createElement(tag);
  made.className = kind;
  made.textContent = text;
  return made;
}
