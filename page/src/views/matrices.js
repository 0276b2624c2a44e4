// (c) Theta and the order matrix as heat maps, with one pixel per cell. Labels are shown if they are
// large enough to read. The labels of the selected cell are always shown.

import { colourBar, drawing, raster } from "../core/axes.js";
import { diverging, isLight, onPaper } from "../core/colours.js";
import { drawByWidth, h, replace, s } from "../core/dom.js";
import { choice, figure } from "../core/figure.js";
import { factor, fitted, number, percent, probability, textWidth } from "../core/text.js";

const SIZES = [12, 20, 50, 100, 200];
const SMALLEST = 8.5; // labels whose letters would be smaller than this, in pixels, are left out
const WRITTEN = 27; // a cell of at least this size, in pixels, shows its number

export const matrices = {
  id: "matrices",
  title: "All effects and all orders",
  short: "Heat maps",

  render(root, page) {
    root.append(
      h(
        "p",
        { class: "lead" },
        "Point at a cell, or use the arrow keys, to read its value. In the map of effects, the item of the row acts on the item of the column. In the map of orders, the number is the probability that the item of the row came before the item of the column.",
      ),
      h("div", { class: "two" }, thetaMap(page), page.data.orders.items.length > 1 ? orderMap(page) : null),
    );
  },
};

/** Return the choices for the number of items that are shown. */
function sizes(n, active) {
  const fit = SIZES.filter((size) => size < n).map((size) => [String(size), `${size} most frequent`]);
  const acting = active ? [["acting", `${active.length} with interactions`]] : [];
  return [...acting, ...fit, [String(n), `all ${n}`]];
}

function heatMap(page, options) {
  const state = { count: Math.min(options.items.length, 50), sort: options.sorts[0][0] };
  const first = SIZES.filter((size) => size <= 20 && size < options.items.length).pop();
  state.count = String(first ?? options.items.length);
  const controls = [
    options.items.length > SIZES[0] ? choice("items", sizes(options.items.length, options.active), state.count, (x) => update({ count: x })) : null,
    choice("sorted by", options.sorts, state.sort, (x) => update({ sort: x })),
  ].filter(Boolean);
  const made = figure(options.name, options.title, { controls, hint: "\u00a0", note: options.note });
  let width = 500;
  const shown = () => (state.count === "acting" ? options.active : options.items.slice(0, Number(state.count)));
  const draw = () => drawMap(made, options.arrange(shown(), state.sort), width, options, page);
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

function drawMap(made, order, width, options, page) {
  const { data } = page;
  const m = order.length;
  const longest = Math.max(...order.map((i) => textWidth(data.short[i], 11)));
  const fits = (room) => Math.min((room / m) * 0.9, 11.5);
  const margin = Math.round(Math.min(Math.max(longest + 10, 40), 0.3 * width));
  let side = width - margin - 8;
  const written = fits(side) >= SMALLEST;
  // If there is not enough space for all labels, only those of the selected cell are written.
  side = Math.min(side, Math.max(52 * m, 160), 760);
  const cell = side / m;
  const letters = written ? Math.min(fits(side), 11.5) : 11;
  const below = written ? longest * (letters / 11) * 0.75 + 14 : 18;
  const height = Math.round(side + below + 44);
  const colours = diverging();
  const shade = (i, j) => options.colour(order[i], order[j], colours);
  const labels = s("g", { class: "labels" });
  if (written) {
    order.forEach((item, at) => {
      const middle = (at + 0.5) * cell;
      labels.append(
        s("text", { x: margin - 5, y: middle + letters * 0.35, "text-anchor": "end", style: { "font-size": `${letters}px` }, class: "label" }, fitted(data.short[item], letters, margin - 6)),
        s("text", { transform: `translate(${margin + middle + letters * 0.3},${side + 8}) rotate(-50)`, "text-anchor": "end", style: { "font-size": `${letters}px` }, class: "label" }, data.short[item]),
      );
    });
  }
  const values = cell >= WRITTEN ? numbers(order, cell, margin, options, colours) : null;
  const cursor = s("g", { class: "cursor", "data-only": "screen" });
  const svg = drawing(
    width,
    height,
    s("rect", { x: margin, y: 0, width: side, height: side, class: "empty" }),
    raster(m, m, shade, { x: margin, y: 0, width: side, height: side }),
    labels,
    values,
    colourBar(margin, height - 26, Math.min(side, 220), (x) => colours(2 * x - 1), options.scale(order)),
    cursor,
  );
  svg.setAttribute("tabindex", "0");
  svg.setAttribute("aria-label", options.title);
  replace(made.body, svg);
  follow(svg, { order, margin, side, cell, cursor, made, options, page, written });
}

/** Return a number with one digit; a value that rounds to zero has no sign. */
function oneDigit(x) {
  const text = x.toFixed(1);
  return text === "-0.0" ? "0.0" : text.replace("-", "\u2212");
}

function numbers(order, cell, margin, options, colours) {
  const size = Math.min(cell * 0.34, 11);
  return s(
    "g",
    { class: "values" },
    order.flatMap((a, i) =>
      order.map((b, j) => {
        const text = options.text(a, b);
        if (!text) return null;
        const rgba = options.colour(a, b, colours);
        const seen = rgba ? onPaper(rgba) : null;
        return s(
          "text",
          {
            x: margin + (j + 0.5) * cell, y: (i + 0.5) * cell + size * 0.35, "text-anchor": "middle",
            style: { "font-size": `${size}px`, fill: seen ? (isLight(seen) ? "#1a1a1a" : "#ffffff") : "" },
          }, // prettier-ignore
          text,
        );
      }),
    ),
  );
}

/** Show the value of the cell under the pointer, or selected with the arrow keys. */
function follow(svg, at) {
  let place = null;
  const show = (i, j) => {
    const { order, margin, side, cell, options, page } = at;
    const m = order.length;
    if (i < 0 || j < 0 || i >= m || j >= m) return;
    place = [i, j];
    replace(at.made.status, options.say(order[i], order[j], page));
    const [x, y] = [margin + j * cell, i * cell];
    replace(
      at.cursor,
      s("rect", { x, y: 0, width: cell, height: side, class: "beam" }),
      s("rect", { x: margin, y, width: side, height: cell, class: "beam" }),
      s("rect", { x, y, width: cell, height: cell, class: "cell" }),
      at.written
        ? null
        : [
            s("text", { x: margin - 5, y: y + cell / 2 + 4, "text-anchor": "end", class: "label strong" }, fitted(page.data.short[order[i]], 13, margin - 6)),
            s("text", { x: Math.min(Math.max(x + cell / 2, margin + 30), margin + side - 30), y: side + 14, "text-anchor": "middle", class: "label strong" }, page.data.short[order[j]]),
          ],
    );
  };
  const point = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const [x, y] = [(event.clientX - box.left) * scale - at.margin, (event.clientY - box.top) * scale];
    if (x >= 0 && y >= 0 && x < at.side && y < at.side) show(Math.floor(y / at.cell), Math.floor(x / at.cell));
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point); // a tap on a touch screen
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Enter" && place) at.page.openItem(at.order[place[0]]);
    if (!step) return;
    event.preventDefault();
    const [i, j] = place ?? [0, -1];
    show(i + step[0], j + step[1]);
  });
}

/** Return the items sorted in one of the ways that a map offers. */
function arranged(page, items, sort, early) {
  const { labels } = page.data;
  const copy = [...items];
  if (sort === "name") copy.sort((a, b) => (labels[a] < labels[b] ? -1 : 1));
  if (sort === "time") copy.sort((a, b) => early(b) - early(a));
  return copy;
}

function thetaMap(page) {
  const { data } = page;
  const effects = new Map(data.edges.map((edge) => [edge.from * data.n + edge.to, edge]));
  const edge = (a, b) => effects.get(a * data.n + b);
  const sizes = data.edges.map((e) => Math.abs(e.effect)).sort((a, b) => a - b);
  const top = sizes.length ? Math.max(sizes[Math.floor(0.97 * (sizes.length - 1))], 0.1) : 1;
  const { base } = data.payload.model;
  const sure = (found) => (data.isPosterior ? `; present with probability ${probability(found.certainty)}` : "");
  const acting = new Set(data.edges.flatMap((e) => [e.from, e.to]));
  const active = page.itemsByFrequency.filter((item) => acting.has(item));
  return heatMap(page, {
    active: active.length > 1 && active.length < data.n ? active : null,
    name: "theta",
    title: "Effects (theta)",
    items: page.itemsByFrequency,
    sorts: [["frequency", "frequency"], ["name", "name"]],
    arrange: (items, sort) => arranged(page, items, sort, () => 0),
    colour(a, b, colours) {
      if (a === b) return [128, 128, 128, 110];
      const found = edge(a, b);
      if (!found) return null;
      const value = Math.min(Math.max(found.effect / top, -1), 1);
      return colours(Math.sign(value) * (0.16 + 0.84 * Math.abs(value)), found.opacity);
    },
    text: (a, b) => (a === b || !edge(a, b) ? "" : oneDigit(edge(a, b).effect)),
    say(a, b) {
      if (a === b) return [page.name(a), `: base rate ${number(Math.exp(base[a]), 3)} (log ${number(base[a], 3)})`];
      const found = edge(a, b);
      return [page.name(a), " on the rate of ", page.name(b), found ? `: ${factor(found.effect)} (log ${number(found.effect, 3)})${sure(found)}` : data.isPosterior ? ": probably no effect" : ": no effect"];
    },
    scale: () => [`${number(-top, 2)} or less`, "0", `${number(top, 2)} or more`],
    note:
      "The item of the row acts on the item of the column. In orange cells, the item of the row raises the rate of the item of the column. In blue cells it lowers this rate, and in empty cells it has no effect. The number is the logarithm of the factor by which the rate changes. Point at the grey diagonal to read base rates." +
      (data.isPosterior ? ` Effects are means over the posterior. A cell has a weak colour if it is uncertain whether the interaction is present, and it is empty if this probability is below ${percent(data.payload.model.least_present)}.` : ""),
  });
}

function orderMap(page) {
  const { data } = page;
  const { orders } = data;
  const rank = new Map(page.itemsByFrequency.map((item, place) => [item, place]));
  const items = [...orders.items].sort((a, b) => rank.get(a) - rank.get(b));
  const early = (shown) => (item) =>
    shown.reduce((sum, other) => {
      const p = orders.probability(item, other);
      return sum + (Number.isNaN(p) ? 0.5 : p);
    }, 0);
  const known = new Map();
  for (const row of data.verdicts.rows) {
    // For a posterior, the number is 0 if it is certain which of the two items usually comes first,
    // and 1 if this is completely uncertain.
    if (row.usuallyFirst !== null) known.set(row.first * data.n + row.second, Math.min((1 - row.usuallyFirst) / 0.45, 1));
    else if (row.verdict === "depends" || row.verdict === "untrusted") known.set(row.first * data.n + row.second, 1);
    else if (row.low !== null) known.set(row.first * data.n + row.second, row.high - row.low);
  }
  const spread = (a, b) => known.get(a * data.n + b) ?? known.get(b * data.n + a) ?? 0;
  return heatMap(page, {
    name: "order-matrix",
    title: "Orders",
    items,
    sorts: [["time", "first to last"], ["frequency", "frequency"], ["name", "name"]],
    arrange: (shown, sort) => arranged(page, shown, sort, early(shown)),
    colour(a, b, colours) {
      if (a === b) return [128, 128, 128, 110];
      const p = orders.probability(a, b);
      if (Number.isNaN(p)) return null;
      const seen = orders.together(a, b);
      const often = data.isPosterior || Number.isNaN(seen) ? 1 : Math.min(seen / 0.005, 1);
      return colours(2 * p - 1, Math.max(0.15, Math.min(often, 1 - spread(a, b))));
    },
    text(a, b) {
      const p = orders.probability(a, b);
      return a === b || Number.isNaN(p) ? "" : probability(p).replace(/^(<|>)?0\./, "$1.");
    },
    say(a, b) {
      if (a === b) return [page.name(a)];
      const p = orders.probability(a, b);
      if (Number.isNaN(p)) return [page.name(a), " and ", page.name(b), data.isPosterior ? ": no sample has both" : ": samples that are simulated from the model almost never have both"];
      return ["P(", page.name(a), " before ", page.name(b), `) = ${probability(p)}${Number.isNaN(orders.together(a, b)) ? "" : `; ${percent(orders.together(a, b))} of the samples have both`}`];
    },
    scale: () => ["0: came after", "0.5", "1: came before"],
    note: data.isPosterior
      ? "The number is the probability that the item of the row came before the item of the column, among samples with both, averaged over the posterior. A cell has a weak colour if the data cannot tell which of the two items usually comes first."
      : "The number is the probability that the item of the row came before the item of the column, among samples with both. A cell has a weak colour if the two items rarely occur together, if the range of the probability is wide, or if the verdict on the order is \u201cnot sure\u201d or \u201cnot trusted\u201d.",
  });
}

