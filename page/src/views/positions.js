// The arrival time, or the position in the order, of each item, with the interval of 90% of the
// sequences.

import { scaleLinear } from "d3-scale";

import { axisBelow, drawing } from "../core/axes.js";
import { drawByWidth, replace, roving, s } from "../core/dom.js";
import { choice, figure, slider } from "../core/figure.js";
import { fitted, integer, number, percent, textWidth } from "../core/text.js";

const ROW = 18;

export function positionsFigure(page) {
  const { data } = page;
  const { positions } = data.payload;
  const place = new Map(positions.items.map((item, at) => [item, at]));
  const known = page.itemsByFrequency.filter((item) => place.has(item) && positions.position[place.get(item)]);
  const state = { what: "time", items: Math.min(known.length, 25) };
  const made = figure("positions", "When each item arrives", {
    controls: [
      choice("show", [["time", "time of arrival"], ["position", "position in the order"]], "time", (x) => update({ what: x })),
      known.length > 2 ? slider("items", { min: 2, max: Math.min(known.length, 200), value: state.items, show: (x) => `${x} most frequent` }, (x) => update({ items: x })) : null,
    ].filter(Boolean),
    hint: "\u00a0",
    note: `${integer(positions.draws)} sequences of items were simulated from the model. For each item, the figure shows the sequences that contain the item: the dot is the median, the thick line contains half of them, and the thin line contains 90%. Items that are mostly seen in late samples have late positions, partly because late samples have more items.`,
  });
  let width = 800;
  function draw() {
    const rows = known
      .slice(0, state.items)
      .map((item) => ({ item, at: positions[state.what][place.get(item)] }))
      .sort((a, b) => a.at[2] - b.at[2] || a.at[3] - b.at[3] || mean(a) - mean(b));
    drawPositions(made, rows, width, state.what, page);
  }
  const mean = (row) => row.at.reduce((sum, x) => sum + x, 0);
  function update(change) {
    Object.assign(state, change);
    draw();
  }
  drawByWidth(made.body, (w) => {
    width = w;
    draw();
  });
  return made.element;
}

function drawPositions(made, rows, width, what, page) {
  const { data } = page;
  const left = Math.min(Math.max(...rows.map(({ item }) => textWidth(data.short[item], 11.5))) + 14, width * 0.36);
  const top = Math.max(...rows.map(({ at }) => at[4]));
  const x = scaleLinear([what === "position" ? 1 : 0, Math.max(top, what === "position" ? 2 : 0.1)], [left, width - 16]);
  const height = rows.length * ROW + 48;
  const marks = rows.map(({ item, at }, row) => {
    const y = row * ROW + ROW / 2 + 2;
    return s(
      "g",
      {
        class: "position",
        on: {
          mouseenter: () => say(item, at), focus: () => say(item, at), click: () => page.openItem(item),
          keydown: (event) => event.key === "Enter" && page.openItem(item),
        },
      }, // prettier-ignore
      s("rect", { x: 0, y: y - ROW / 2, width, height: ROW, class: "hit" }),
      s("text", { x: left - 8, y: y + 4, "text-anchor": "end", class: "label" }, fitted(data.short[item], 12, left - 9)),
      s("line", { x1: x(at[0]), x2: x(at[4]), y1: y, y2: y, class: "thin" }),
      s("line", { x1: x(at[1]), x2: x(at[3]), y1: y, y2: y, class: "thick" }),
      s("circle", { cx: x(at[2]), cy: y, r: 4, class: "dot" }),
    );
  });
  function say(item, at) {
    const share = data.frequency ? `; in ${percent(data.frequency[item])} of samples` : "";
    replace(made.status, page.name(item), `: ${what} ${number(at[2], 2)} (median), 90% between ${number(at[0], 2)} and ${number(at[4], 2)}${share}`);
  }
  roving(marks);
  const title = what === "position" ? "position in the order (1 is first)" : "time of arrival";
  replace(made.body, drawing(width, height, axisBelow(x, rows.length * ROW + 6, { title, grid: rows.length * ROW + 4 }), marks));
}
