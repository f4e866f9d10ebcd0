/* The address is the view: every jump is a link such as `?finding=COR001.2` or `?go=next-step`,
   laid over what the address says already. The server answers with the view that it means. */
(function (own) {
  "use strict";

  const PATIENCE_MS = 5000; // an answer that takes longer no longer holds up the next jump
  const waiting = [];       // jumps that wait for the view before them
  let asked = 0;            // when the view under way was asked for; 0 when none is

  const params = () => new URLSearchParams(location.search);

  function write(changes, how) {
    const all = params();
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === "") all.delete(name);
      else all.set(name, value);
    }
    const query = all.toString().replaceAll("%2C", ",").replaceAll("%2F", "/").replaceAll("%40", "@");
    history[how](null, "", query ? `?${query}` : location.pathname);
  }

  function ask() {
    asked = performance.now();
    own.busy.with("view");
    dash_clientside.set_props("address", { data: { search: location.search, asked } });
  }

  /* Jump: `changes` are laid over the address; `keep` leaves no step behind in the history. */
  function travel(changes, keep = false) {
    waiting.push([changes, keep]);
    if (!asked || performance.now() - asked > PATIENCE_MS) depart();
  }

  function depart() {
    const [changes, keep] = waiting.shift();
    write(changes, keep ? "replaceState" : "pushState");
    ask();
  }

  /* The server's view came in: the address is put into its one spelling, and the next jump starts
     from there. */
  function arrive(view) {
    asked = 0;
    history.replaceState(null, "", view.search || location.pathname);
    if (waiting.length) return depart();
    own.busy.with("panes");
    return own.busy.without("view");
  }

  /* Put down what was done here without asking: panned, zoomed, pinned, filtered. */
  let soon = 0;
  const later = {};
  function note(changes) {
    Object.assign(later, changes);
    clearTimeout(soon);
    soon = setTimeout(flush, 150);
    own.busy.with("address");
  }
  function flush() {
    clearTimeout(soon);
    write(later, "replaceState");
    for (const name of Object.keys(later)) delete later[name];
    own.busy.without("address");
  }

  const linkAt = (target) => target.closest && target.closest('a[href^="?"]');

  addEventListener("click", (event) => {
    const link = linkAt(event.target);
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    flush();
    travel(changesOf(link.getAttribute("href")));
  });

  /* A place of its own (finding, selection, step) brings its own range. */
  function changesOf(href) {
    const changes = Object.fromEntries(new URLSearchParams(href));
    const place = ["finding", "sel", "step"].find((name) => changes[name]);
    return place ? { finding: null, sel: null, step: null, t: null, ...changes } : changes;
  }

  addEventListener("popstate", ask);

  own.address = { begin: ask, travel, arrive, note, flush, changesOf };
})((window.stepscope = window.stepscope || {}));
