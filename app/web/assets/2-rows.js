/* Lanes laid out in rows: pinned lanes, then every section with its groups and their lanes.

   A row: {kind: section | group | lane | strip, name, part, lanes, top, height, ...}. A folded group
   is a strip, one row that shows its lanes thinly, one above the other. */
(function (own) {
  "use strict";

  const SECTION = 22;
  const LANE = 20;
  const COUNTER = 40;

  const foldKey = (lane) => `${lane.section}/${lane.group}`;

  /* Neighbouring lanes that share what `key` says, in order. */
  function runs(lanes, key) {
    const found = [];
    for (const lane of lanes) {
      const last = found[found.length - 1];
      if (last && last.key === key(lane)) last.lanes.push(lane);
      else found.push({ key: key(lane), lanes: [lane] });
    }
    return found;
  }

  const laneRow = (lane, name, part, more) => ({
    kind: "lane", lane, lanes: [lane], name, part,
    height: lane.kind === "counter" ? COUNTER : LANE, ...more,
  });

  /* Short names stand beside the first lane of their group (AIC, AIV0, AIV1); long ones over it. */
  function groupRows({ key, lanes }, folded) {
    const [first] = lanes;
    if (!first.group) return lanes.map((lane) => laneRow(lane, lane.label, "", {}));
    const shut = folded.has(key);
    if (shut) return [{ kind: "strip", lane: first, lanes, name: first.group, part: `× ${lanes.length}`, fold: key, shut, height: LANE }];
    if (first.section !== "tracks")
      return lanes.map((lane, at) => laneRow(lane, at ? "" : first.group, lane.label, at ? {} : { fold: key, shut }));
    const head = { kind: "group", lanes: [], name: first.group, fold: key, shut, height: LANE };
    return [head, ...lanes.map((lane) => laneRow(lane, lane.label, "", { deep: true }))];
  }

  function sectionRows({ key, lanes }, folded, notes) {
    const shut = folded.has(key);
    const head = { kind: "section", name: key, note: notes[key] || "", fold: key, shut, lanes: [], height: SECTION };
    return [head, ...(shut ? [] : runs(lanes, foldKey).flatMap((group) => groupRows(group, folded)))];
  }

  function stacked(rows) {
    let top = 0;
    for (const row of rows) {
      row.top = top;
      top += row.height;
    }
    return top;
  }

  /* {pinned, rows, pinnedHeight, height}; `top` of a row counts from the top of its own list. */
  function layout(model, pins, fold) {
    const folded = new Set(fold);
    const pinned = pins.map((id) => {
      const lane = model.lanes[id];
      return laneRow(lane, lane.group || lane.label, lane.group ? lane.label : "", { pinned: true });
    });
    const rows = runs(model.lanes, (lane) => lane.section)
      .flatMap((section) => sectionRows(section, folded, model.notes));
    return { pinned, rows, pinnedHeight: stacked(pinned), height: stacked(rows) };
  }

  /* The row that shows a lane, or undefined where it is folded away. */
  const rowOf = (plan, lane) => plan.rows.find((row) => row.lanes.some(({ id }) => id === lane));

  own.rows = { layout, rowOf };
})((window.stepscope = window.stepscope || {}));
