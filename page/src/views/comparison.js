// The orders of two cohorts, one per axis, as in the static figure plot_cohort_comparison.

import { scaleLinear } from "d3-scale";

import { axisBelow, axisLeft, drawing } from "../core/axes.js";
import { drawByWidth, h, replace, s } from "../core/dom.js";
import { figure, slider } from "../core/figure.js";
import { table } from "../core/table.js";
import { counted, fitted, percent, probability, shorten, textWidth } from "../core/text.js";

const NAMED = 10; // pairs whose names are written
const LETTERS = 11;

export function comparisonPart(page) {
  const found = page.data.payload.comparison;
  const [own, other] = found.names.map((name) => shorten(name, 30));
  const rows = found.a.map((a, k) => ({ a, b: found.b[k], first: found.first[k], second: found.second[k] }));
  rows.forEach((row) => (row.gap = Math.abs(row.first - row.second)));
  rows.sort((p, q) => q.gap - p.gap);
  const same = rows.filter((row) => row.second >= 0.5).length;
  const state = { gap: 0.2 };
  const made = figure("cohort-comparison", "Orders of the two cohorts", {
    controls: [slider("mark differences above", { min: 0.05, max: 0.9, step: 0.05, value: state.gap, show: (x) => x.toFixed(2) }, (x) => { state.gap = x; draw(); })],
    hint: "Point at a dot to read the names of the two items and the probabilities.",
    note: "Each dot is a pair of items. On the dotted line, the order has the same probability in both cohorts. Below the horizontal line at 0.5, the other cohort has the opposite order. For the marked pairs, the probabilities differ by more than the limit that you have set. Two fits always differ a little by chance.",
  });
  let width = 600;
  const draw = () => drawPairs(made, rows, state, width, page, [own, other]);
  drawByWidth(made.body, (w) => {
    width = w;
    draw();
  });
  const columns = [
    { title: "first", text: true, value: (row) => page.data.labels[row.a], show: (row) => page.item(row.a) },
    { title: "then", text: true, value: (row) => page.data.labels[row.b], show: (row) => page.item(row.b) },
    { title: "this cohort", value: (row) => row.first, show: (row) => probability(row.first) },
    { title: "other cohort", value: (row) => row.second, show: (row) => probability(row.second) },
    { title: "difference", value: (row) => row.gap, show: (row) => row.gap.toFixed(2) },
  ];
  const listed = table("cohort-comparison", columns, rows, { caption: "Orders of both cohorts", noun: "pair", page: 8 });
  return h(
    "div",
    {},
    h("h3", {}, "Compared with another cohort"),
    h("p", {}, h("bdi", {}, own), " and ", h("bdi", {}, other), ` share ${counted(found.items, "item")}. Of ${counted(rows.length, "pair")} of items, ${same} (${percent(same / rows.length)}) have the same order in both cohorts.`),
    made.element,
    h("details", {}, h("summary", {}, "All pairs as a table"), listed.element),
  );
}

function drawPairs(made, rows, state, width, page, [own, other]) {
  const size = Math.min(width, 520);
  const height = size + 6;
  const x = scaleLinear([0.48, 1.02], [50, size - 8]);
  const y = scaleLinear([-0.02, 1.02], [height - 46, 20]);
  const { data } = page;
  const say = (row) =>
    replace(made.status, page.name(row.a), " before ", page.name(row.b), `: ${probability(row.first)} and ${probability(row.second)}`);
  const dots = rows.map((row) => {
    const [cx, cy] = [x(row.first), y(row.second)];
    const far = row.gap > state.gap;
    const mark = far
      ? s("path", { d: `M${cx},${cy - 5}L${cx + 5},${cy}L${cx},${cy + 5}L${cx - 5},${cy}Z`, class: "dot far" })
      : s("circle", { cx, cy, r: rows.length > 2000 ? 2 : 3.4, class: "dot light" });
    mark.addEventListener("mouseenter", () => say(row));
    return mark;
  });
  replace(
    made.body,
    drawing(
      width, height,
      s("line", { x1: x(0.5), y1: y(0.5), x2: x(1), y2: y(1), class: "guide" }),
      s("line", { x1: x(0.48), y1: y(0.5), x2: x(1.02), y2: y(0.5), class: "grid" }),
      axisLeft(y, 50, { title: `P(a before b), ${fitted(other, 12, size - 140)}` }),
      axisBelow(x, height - 46, { title: `P(a before b), ${fitted(own, 12, size - 140)}`, ticks: 5 }),
      dots.reverse(),
      names(rows.filter((row) => row.gap > state.gap), x, y, width, data),
    ), // prettier-ignore
  );
}

/** Write the names of the pairs that differ most, if they do not cover other names. */
function names(rows, x, y, width, data) {
  const taken = [];
  const texts = [];
  for (const row of rows) {
    if (texts.length === NAMED) break;
    const text = `${shorten(data.labels[row.a], 12)} \u2192 ${shorten(data.labels[row.b], 12)}`;
    const wide = textWidth(text, LETTERS) + 8;
    const [cx, cy] = [x(row.first), y(row.second)];
    for (const left of [cx + 8, cx - 8 - wide]) {
      const box = [left, cy - 7, left + wide, cy + 7];
      const free = box[0] > 52 && box[2] < width && taken.every((b) => box[2] < b[0] || box[0] > b[2] || box[3] < b[1] || box[1] > b[3]);
      if (!free) continue;
      taken.push(box);
      texts.push(s("text", { x: left, y: cy + 4, class: "label", style: { "font-size": `${LETTERS}px` } }, text));
      break;
    }
  }
  return texts;
}
