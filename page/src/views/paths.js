// The most common paths: the first items of the most likely orders of the samples.

import { scaleLinear } from "d3-scale";

import { drawing } from "../core/axes.js";
import { drawByWidth, h, replace, s } from "../core/dom.js";
import { choice, figure, slider } from "../core/figure.js";
import { counted, percent, shorten, textWidth } from "../core/text.js";
import { commonPaths } from "../maths/tree.js";
import { itemColours } from "./tree.js";

const SHOWN = 12;
const ROW = 26;
const LETTERS = 11.5;

export function pathsFigure(page) {
  const { data } = page;
  const { orders } = data.samples;
  const longest = Math.max(...orders.map((order) => order?.length ?? 0));
  const steps = Math.min(longest, 5);
  const state = { length: Math.min(3, Math.max(steps, 1)), items: Math.min(data.n, 20) };
  const lengths = Array.from({ length: Math.max(steps, 1) }, (_, k) => [String(k + 1), k ? `the first ${k + 1} items` : "the first item"]);
  const made = figure("paths", "The most common paths", {
    controls: [
      choice("show", lengths, String(state.length), (x) => update({ length: Number(x) })),
      data.n > 2 ? slider("among the", { min: 2, max: Math.min(data.n, 60), value: state.items, show: (x) => `${x} most frequent items` }, (x) => update({ items: x })) : null,
    ].filter(Boolean),
    note: "",
  });
  let width = 800;
  function draw() {
    const kept = new Set(page.itemsByFrequency.slice(0, state.items));
    const { paths, of } = commonPaths(orders, (item) => kept.has(item), state.length);
    drawPaths(made, paths, of, width, page);
  }
  function update(change) {
    Object.assign(state, change);
    draw();
  }
  drawByWidth(made.body, (w) => {
    width = w;
    draw();
  });
  page.onTheme(draw);
  return made.element;
}

function drawPaths(made, paths, of, width, page) {
  if (!paths.length) {
    replace(made.body, h("p", {}, "No sample has that many of the selected items."));
    return;
  }
  const { data } = page;
  const colours = itemColours(page.itemsByFrequency);
  const shown = paths.slice(0, SHOWN);
  const room = width < 560 ? 9 : 16;
  const left = Math.max(92, Math.min(width * 0.28, 230));
  const scale = scaleLinear([0, shown[0].count], [0, left - 84]);
  const rows = shown.map(({ path, count }, row) => {
    const y = row * ROW;
    let x = left;
    const parts = [];
    path.forEach((item, k) => {
      const text = shorten(data.short[item], room);
      const wide = textWidth(text, LETTERS) + 14;
      if (k) {
        parts.push(s("path", { d: `M${x + 2},${y + ROW / 2}h7m-3,-3l3,3l-3,3`, class: "step" }));
        x += 12;
      }
      parts.push(
        s("rect", { x, y: y + 3, width: wide, height: ROW - 6, rx: 4, class: "chip-shape", style: { stroke: colours.get(item) ?? "" } }),
        s("text", { x: x + wide / 2, y: y + ROW / 2 + 4, "text-anchor": "middle", class: "label" }, text),
      );
      x += wide;
    });
    const end = left - 12;
    return s(
      "g",
      {},
      s("rect", { x: end - scale(count), y: y + 6, width: Math.max(scale(count), 1), height: ROW - 12, class: "bar" }),
      s("text", { x: end - scale(count) - 5, y: y + ROW / 2 + 4, class: "tick", "text-anchor": "end" }, `${count} (${percent(count / of)})`),
      parts,
    );
  });
  replace(made.body, drawing(width, shown.length * ROW + 4, rows));
  replace(made.note, `The first items of the most likely orders of ${counted(of, "sample")}, which are the samples with enough of these items. There are ${counted(paths.length, "different path")} in total. The number next to each path is the number of samples with this path.`);
}
