/* What the page still waits for, told to whoever watches it (`aria-busy`): readers, tests. */
(function (own) {
  "use strict";

  const awaited = new Set();

  function tell() {
    document.getElementById("page").setAttribute("aria-busy", awaited.size > 0);
  }

  own.busy = {
    with: (what) => { awaited.add(what); tell(); },
    without: (what) => { awaited.delete(what); tell(); },
  };
})((window.stepscope = window.stepscope || {}));
