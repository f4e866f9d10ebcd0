/* Light or dark: what the system says, until a switch says otherwise; the browser remembers it. */

const KEY = "stepscope.theme";
const system = matchMedia("(prefers-color-scheme: light)");

/** What was chosen here before: light, dark, or nothing; a browser may keep nothing at all. */
function chosen() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export const isLight = () => {
  const says = document.documentElement.dataset.theme;
  return says ? says === "light" : system.matches;
};

/** @type {() => void} */
let changed = () => {};

function apply() {
  const says = chosen();
  if (says === "light" || says === "dark") document.documentElement.dataset.theme = says;
  else delete document.documentElement.dataset.theme;
  changed();
}

/** Go over to the other; what the system says anyway is not remembered, so that it is followed. */
export function toggle() {
  const wanted = isLight() ? "dark" : "light";
  try {
    if (wanted === (system.matches ? "light" : "dark")) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, wanted);
    apply();
  } catch {
    document.documentElement.dataset.theme = wanted;
    changed();
  }
}

/** @param {() => void} given  is told whenever light became dark, or dark light */
export function follow(given) {
  changed = given;
  system.addEventListener("change", apply);
  addEventListener("storage", ({ key }) => key === KEY && apply());
  apply();
}
