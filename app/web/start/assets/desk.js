/* The page from which a trace is opened: asks the server to open one, says how far it is, goes there. */

const POLL_MS = 200;

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @returns {T}
 */
const byId = (id) => /** @type {T} */ (document.getElementById(id));

/**
 * @param {string} text
 * @param {boolean} [failed]
 */
function tell(text, failed = false) {
  byId("told").textContent = text;
  byId("told").classList.toggle("failed", failed);
  if (failed) busy(false);
}

/** @param {boolean} is */
function busy(is) {
  byId("desk").ariaBusy = String(is);
  byId("progress").hidden = !is;
}

/** @param {number} done
 * @param {number | null} total */
function draw(done, total) {
  const bar = /** @type {HTMLProgressElement} */ (byId("progress"));
  if (total) bar.value = Math.min(1, done / total);
  else bar.removeAttribute("value");
}

/** Look how far it is, until the page of the trace is there.
 * @param {number} number */
async function follow(number) {
  for (;;) {
    const answer = await fetch(`/open/progress/${number}`);
    if (!answer.ok) return tell("it is not being opened any more", true);
    const { what, done, total, failed, href } = await answer.json();
    if (failed) return tell(failed, true);
    if (href) return location.assign(href);
    tell(`${what} …`);
    draw(done, total);
    await new Promise((later) => { setTimeout(later, POLL_MS); });
  }
}

/** @param {{number?: number, failed?: string}} begun */
const began = ({ number, failed }) => (number === undefined ? tell(failed || "it cannot be opened", true) : follow(number));

/** @param {{path?: string, recent?: number}} asked */
async function open(asked) {
  busy(true);
  tell("opening …");
  draw(0, null);
  const sent = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(asked) };
  const answer = await fetch("/open/begin", sent).catch(() => null);
  if (!answer || !answer.ok) return tell("the server does not answer", true);
  return began(await answer.json());
}

/** Send a file; the browser says how much of it has gone.
 * @param {File} file */
function drop(file) {
  const most = Number(byId("drop").dataset.most);
  if (file.size > most) return tell(`${file.name} has ${file.size.toLocaleString("en")} bytes, and ${most.toLocaleString("en")} are taken at most: open it by its path, where nothing is copied`, true);
  busy(true);
  tell(`sending ${file.name} …`);
  draw(0, null);
  const sent = new XMLHttpRequest();
  sent.upload.addEventListener("progress", ({ loaded, total }) => draw(loaded, total));
  sent.addEventListener("load", () => {
    if (sent.status === 200) return void began(JSON.parse(sent.responseText));
    return tell(sent.status === 413 ? "the file is too large to be dropped: open it by its path, where nothing is copied" : "the server does not take it", true);
  });
  sent.addEventListener("error", () => tell("it did not reach the server: it may be too large to be dropped, or a folder; open it by its path", true));
  sent.open("POST", `/open/drop?name=${encodeURIComponent(file.name)}`);
  return sent.send(file);
}

const isBusy = () => byId("desk").ariaBusy === "true";

byId("by-path").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!isBusy()) open({ path: /** @type {HTMLInputElement} */ (byId("path")).value });
});

addEventListener("click", (event) => {
  const chosen = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest(".recent"));
  if (chosen && !isBusy()) open({ recent: Number(chosen.dataset.number) });
});

byId("file").addEventListener("change", (event) => {
  const [file] = /** @type {HTMLInputElement} */ (event.target).files || [];
  if (file && !isBusy()) drop(file);
});

addEventListener("dragover", (event) => {
  event.preventDefault();
  byId("desk").classList.add("over");
});
addEventListener("dragleave", () => byId("desk").classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  byId("desk").classList.remove("over");
  const dropped = event.dataTransfer?.files || [];
  if (isBusy() || !dropped.length) return;
  const isFolder = event.dataTransfer?.items[0]?.webkitGetAsEntry()?.isDirectory;
  if (isFolder) tell(`${dropped[0].name} is a folder: open it by its path`, true);
  else if (dropped.length > 1) tell("one file is opened at a time: drop one", true);
  else drop(dropped[0]);
});

const ways = /** @type {HTMLFieldSetElement} */ (byId("ways"));
ways.disabled = false;
byId("path").focus();

export {};
