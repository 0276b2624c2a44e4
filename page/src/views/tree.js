// The tree of the most likely orders of the samples, as a circle (as in Schill et al.) or straight.

import { hierarchy, tree } from "d3-hierarchy";

import { drawing } from "../core/axes.js";
import { palette } from "../core/colours.js";
import { drawByWidth, h, replace, roving, s } from "../core/dom.js";
import { choice, figure, slider } from "../core/figure.js";
import { counted, percent, textWidth } from "../core/text.js";
import { buildTree, leastFor } from "../maths/tree.js";

const NODES = 72;
const LETTERS = 11;

/** Return a map from the first items of the list to their colours. The other items have no colour. */
export function itemColours(items) {
  const { series } = palette();
  return new Map(items.slice(0, series.length).map((item, place) => [item, series[place]]));
}

export function treeFigure(page) {
  const { data } = page;
  const { orders } = data.samples;
  const most = Math.min(data.n, 40);
  const state = { items: Math.min(data.n, 12), shape: "radial", least: 1 };
  const keepFirst = (count) => {
    const kept = new Set(page.itemsByFrequency.slice(0, count));
    return (item) => kept.has(item);
  };
  state.least = leastFor(orders, keepFirst(state.items), innerWidth < 700 ? NODES / 3 : NODES);
  const leastSlider = slider("samples per branch", { min: 1, max: Math.max(10, Math.ceil(orders.length / 20)), value: state.least, show: (x) => `at least ${x}` }, (x) => update({ least: x }));
  const controls = [
    choice("shape", [["radial", "radial"], ["straight", "straight"]], "radial", (x) => update({ shape: x })),
    most > 2 ? slider("items", { min: 2, max: most, value: state.items, show: (x) => `${x} most frequent` }, (x) => update({ items: x })) : null,
    leastSlider,
  ].filter(Boolean);
  const made = figure("order-tree", "The order tree of the cohort", {
    controls,
    hint: "Point at a branch, or use the arrow keys, to read its order and number of samples.",
    note: "Each step from the centre outwards adds an item. The wider a branch, the more samples have this order. A ring means that the orders of some samples end there. Labels that would cover other labels are left out; point at a branch to read its label.",
  });
  let width = 800;
  function draw() {
    const keep = keepFirst(state.items);
    const root = buildTree(orders, keep, state.least);
    const colours = itemColours(page.itemsByFrequency);
    const art = state.shape === "radial" ? radial(root, width) : straight(root, width, data);
    drawTree(made, art, colours, page);
  }
  function update(change) {
    Object.assign(state, change);
    draw();
  }
  drawByWidth(made.body, (w) => {
    if (w < 560 && width >= 560) {
      state.shape = "straight";
      const select = made.element.querySelector("select");
      if (select) select.value = "straight";
    }
    width = w;
    draw();
  });
  page.onTheme(draw);
  return made.element;
}

const leaf = (node) => !node.children;

function radial(root, width) {
  const size = Math.min(width, 820);
  const levels = hierarchy(root);
  const radius = size / 2 - 74;
  tree()
    .size([2 * Math.PI, radius])
    .separation((a, b) => (a.parent === b.parent ? 1 : 1.6) / Math.max(a.depth, 1))(levels);
  const turn = (node) => node.x - Math.PI / 2;
  const at = (node) => [width / 2 + node.y * Math.cos(turn(node)), size / 2 + node.y * Math.sin(turn(node))];
  const link = (parent, child) => {
    const [x0, y0] = at(parent);
    const [x1, y1] = at(child);
    const middle = (parent.y + child.y) / 2;
    const point = (node, r) => [width / 2 + r * Math.cos(turn(node)), size / 2 + r * Math.sin(turn(node))];
    const [a, b] = [point(parent.depth ? parent : child, middle), point(child, middle)];
    return `M${f(x0)},${f(y0)}C${f(a[0])},${f(a[1])} ${f(b[0])},${f(b[1])} ${f(x1)},${f(y1)}`;
  };
  const label = (node) => {
    const outward = leaf(node);
    const angle = (turn(node) * 180) / Math.PI;
    const flip = Math.cos(turn(node)) < 0;
    const [x, y] = at(node);
    return {
      transform: `translate(${f(x)},${f(y)}) rotate(${f(flip ? angle + 180 : angle)})`,
      x: (flip ? -1 : 1) * (outward ? 8 : -8),
      anchor: outward !== flip ? "start" : "end",
    };
  };
  return { levels, width, height: size, at, link, label };
}

function straight(root, width, data) {
  const levels = hierarchy(root);
  const rows = levels.leaves().length;
  const longest = Math.max(30, ...levels.descendants().filter((n) => n.depth).map((n) => textWidth(data.short[n.data.item], LETTERS)));
  const right = Math.min(longest + 14, width * 0.35);
  tree().size([rows * 17, Math.max(width - right - 16, 120)])(levels);
  const at = (node) => [10 + node.y, 12 + node.x];
  const link = (parent, child) => {
    const [x0, y0] = at(parent);
    const [x1, y1] = at(child);
    const middle = (x0 + x1) / 2;
    return `M${f(x0)},${f(y0)}C${f(middle)},${f(y0)} ${f(middle)},${f(y1)} ${f(x1)},${f(y1)}`;
  };
  const label = (node) => {
    const [x, y] = at(node);
    return { transform: `translate(${f(x)},${f(y)})`, x: leaf(node) ? 8 : -6, y: leaf(node) ? 4 : -7, anchor: leaf(node) ? "start" : "middle" };
  };
  return { levels, width, height: rows * 17 + 24, at, link, label };
}

const f = (x) => x.toFixed(1);

/** Return the nodes whose labels are drawn: of two overlapping labels, that of the larger node. */
function room(art, nodes, data) {
  const kept = new Set();
  const taken = [];
  const ranked = [...nodes].sort((a, b) => b.data.count - a.data.count);
  for (const node of ranked) {
    const dots = labelDots(art, node, data);
    const free = dots.every(([x, y]) => taken.every(([u, v]) => (x - u) ** 2 + (y - v) ** 2 > 81));
    if (!free) continue;
    kept.add(node);
    taken.push(...dots);
  }
  return kept;
}

/** Return points along a label, five pixels apart. */
function labelDots(art, node, data) {
  const [x, y] = art.at(node);
  const place = art.label(node);
  const wide = textWidth(data.short[node.data.item], LETTERS);
  const angle = (Number(/rotate\((.*)\)/.exec(place.transform)?.[1] ?? 0) * Math.PI) / 180;
  const start = place.x - (place.anchor === "end" ? wide : place.anchor === "middle" ? wide / 2 : 0);
  const count = Math.max(1, Math.round(wide / 5));
  const down = place.y ?? 0;
  return Array.from({ length: count + 1 }, (_, k) => {
    const along = start + (wide * k) / count;
    return [x + along * Math.cos(angle) - down * Math.sin(angle), y + along * Math.sin(angle) + down * Math.cos(angle)];
  });
}

function drawTree(made, art, colours, page) {
  const { data } = page;
  const total = art.levels.data.count || 1;
  const thickness = (node) => Math.max(0.8, 26 * Math.pow(node.data.count / total, 0.75));
  const nodes = art.levels.descendants().slice(1);
  if (!nodes.length) {
    replace(made.body, h("p", {}, "No branch has that many samples."));
    return;
  }
  const written = room(art, nodes, data);
  const steps = nodes.map((node) => s("path", { d: art.link(node.parent, node), class: "branch", "stroke-width": f(thickness(node)), style: { stroke: colours.get(node.data.item) ?? "" } }));
  const marks = nodes.map((node) => {
    const [cx, cy] = art.at(node);
    const place = art.label(node);
    const r = Math.min(2.5 + thickness(node) / 3, 8);
    return s(
      "g",
      { class: "twig" },
      s("circle", { cx: f(cx), cy: f(cy), r: f(r), class: node.data.ended ? "end" : "pass", style: { fill: colours.get(node.data.item) ?? "" } }),
      written.has(node) ? s("text", { transform: place.transform, x: place.x, y: place.y ?? 3.8, "text-anchor": place.anchor, class: "label" }, data.short[node.data.item]) : null,
    );
  });
  const say = (node) => {
    const path = node.ancestors().reverse().slice(1);
    const words = path.flatMap((step, k) => [k ? " \u2192 " : "", page.name(step.data.item)]);
    replace(made.status, words, `: ${counted(node.data.count, "sample")} (${percent(node.data.count / total)}); the orders of ${node.data.ended} of them end here`);
    const on = new Set(path);
    nodes.forEach((other, k) => {
      steps[k].classList.toggle("dim", !on.has(other));
      marks[k].classList.toggle("dim", !on.has(other));
    });
  };
  roving(marks);
  const calm = () => nodes.forEach((_, k) => [steps[k], marks[k]].forEach((x) => x.classList.remove("dim")));
  nodes.forEach((node, k) => {
    for (const part of [steps[k], marks[k]]) {
      part.addEventListener("mouseenter", () => say(node));
      part.addEventListener("mouseleave", calm);
    }
    marks[k].addEventListener("focus", () => say(node));
    marks[k].addEventListener("blur", calm);
  });
  const [x, y] = art.at(art.levels);
  const start = s("circle", { cx: f(x), cy: f(y), r: 5, class: "root" });
  replace(made.body, drawing(art.width, art.height, s("g", {}, steps), start, s("g", {}, marks)));
}
