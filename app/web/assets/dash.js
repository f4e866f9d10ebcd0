/* What Dash offers to the scripts of a page. */

/** @typedef {{set_props: (id: string, props: object) => void, no_update: unknown, stepscope?: Record<string, (given: any) => unknown>}} Clientside */

/** @returns {Clientside} */
const clientside = () => /** @type {any} */ (globalThis).dash_clientside;

/**
 * Set properties of a component; the server is told of them.
 * @param {string} id
 * @param {object} props
 */
export const setProps = (id, props) => clientside().set_props(id, props);

/**
 * Do something on the page, as soon as it is there: Dash may be about to make it, or to make it anew.
 * @param {() => void} act
 */
export function onPage(act) {
  if (document.getElementById("page")) act();
  else requestAnimationFrame(() => onPage(act));
}

/**
 * Give functions to the callbacks that are answered in the browser, and let Dash begin.
 * @param {Record<string, (given: any) => void>} functions
 */
export function start(functions) {
  const own = clientside();
  own.stepscope = Object.fromEntries(
    Object.entries(functions).map(([name, act]) => [name, (given) => { onPage(() => act(given)); return own.no_update; }]),
  );
  return new (/** @type {any} */ (globalThis).DashRenderer)();
}
