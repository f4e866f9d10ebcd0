/* Rows in their places: those of the pinned lanes, then those that are shown of all that the server
   has told of (`app/timeline/lane_rows.py`). */
/** @import { Laid, Lane, Model, Plan, Row } from "./types.js" */

const SECTION = 22;
const LANE = 20;
const COUNTER = 40;

/**
 * @param {Row} row
 * @param {Set<string>} collapsed
 */
const isShown = (row, collapsed) =>
  !row.under.some((key) => collapsed.has(key)) && (row.kind !== "strip" || collapsed.has(row.key));

/**
 * @param {Lane} lane
 * @returns {Row}
 */
const pinnedRow = (lane) => ({
  kind: "lane", lanes: [lane.id], under: [], key: "", group: lane.group, pinned: true,
  name: lane.name, part: lane.part,
});

/**
 * @param {Row} row
 * @param {Lane[]} lanes
 */
function heightOf(row, lanes) {
  if (row.kind === "section") return SECTION;
  return row.kind === "lane" && lanes[row.lanes[0]].kind === "counter" ? COUNTER : LANE;
}

/**
 * @param {Row[]} rows
 * @param {Lane[]} lanes
 * @returns {[Laid[], number]}
 */
function stacked(rows, lanes) {
  let height = 0;
  const laid = rows.map((row) => {
    const top = height;
    height += heightOf(row, lanes);
    return { ...row, top, height: height - top };
  });
  return [laid, height];
}

/**
 * @param {Pick<Model, "lanes" | "rows">} model
 * @param {number[]} pins
 * @param {string[]} collapse
 * @returns {Plan}
 */
export function layout(model, pins, collapse) {
  const collapsed = new Set(collapse);
  const [pinned, pinnedHeight] = stacked(pins.map((id) => pinnedRow(model.lanes[id])), model.lanes);
  const [rows, height] = stacked(model.rows.filter((row) => isShown(row, collapsed)), model.lanes);
  return { pinned, rows, pinnedHeight, height };
}

/**
 * The row that shows a lane, or undefined where it is collapsed away.
 * @param {Plan} plan
 * @param {number} lane
 */
export const rowOf = (plan, lane) => plan.rows.find((row) => row.lanes.includes(lane));
