// (b) The interactions as a network. The user can drag items, zoom, and filter interactions. A click
// on an item shows its details.

import { drag } from "d3-drag";
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "d3-force";
import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";

import { drawing } from "../core/axes.js";
import { drawByWidth, h, replace, roving, s } from "../core/dom.js";
import { button, choice, figure, slider } from "../core/figure.js";
import { table } from "../core/table.js";
import { counted, factor, number, percent, shorten, textWidth } from "../core/text.js";

const FIRST = 30;
const MOST = 250;

export const network = {
  id: "network",
  title: "What acts on what?",
  short: "Interactions",

  render(root, page) {
    const { data } = page;
    root.append(
      h(
        "p",
        { class: "lead" },
        "An orange arrow from one item to another means that the presence of the first item speeds up the arrival of the second. A blue dashed line that ends in a bar means that the presence of the first item slows down the arrival of the second. ",
        data.isPosterior
          ? "A line has a weak colour if it is uncertain whether the interaction is present."
          : "Most items have no effect on each other: the penalty removes effects that the data do not need.",
      ),
    );
    if (!data.edges.length) {
      root.append(h("p", {}, "This model has no interactions: all items arrive independently of each other."));
      return;
    }
    root.append(networkFigure(page), interactionTable(page));
  },
};

/** Return the interactions that pass the filters of the figure, the strongest first. */
export function chosenEdges(edges, state) {
  return edges
    .filter((edge) => state.kind === "all" || edge.effect > 0 === (state.kind === "promotes"))
    .filter((edge) => state.item < 0 || edge.from === state.item || edge.to === state.item)
    .filter((edge) => edge.certainty === null || edge.certainty >= state.certainty)
    .slice(0, state.count);
}

function networkFigure(page) {
  const { data } = page;
  const most = Math.min(data.edges.length, MOST);
  const certain = data.edges.some((edge) => edge.certainty !== null);
  const state = { count: Math.min(FIRST, most), kind: "all", item: -1, certainty: firstCertainty(data) };
  const what = data.isPosterior ? "probability at least" : "certainty at least";
  const weakest = (count) => `${count} (${strength(data.edges[count - 1].effect)} or stronger)`;
  const controls = [
    most > 1 ? slider("strongest", { min: 1, max: most, value: state.count, show: weakest }, (x) => update({ count: x })) : null,
    certain ? slider(what, { min: 0, max: 1, step: 0.01, value: state.certainty, show: (x) => x.toFixed(2) }, (x) => update({ certainty: x })) : null,
    choice("show", [["all", "all effects"], ["promotes", "speeding up"], ["inhibits", "slowing down"]], "all", (x) => update({ kind: x })),
    choice("from or to", [["-1", "all items"], ...page.itemsByFrequency.map((i) => [String(i), page.option(i)])], "-1", (x) => update({ item: Number(x) })),
    h("span", { class: "control" }, button("+", "Zoom in", () => view?.zoomBy(1.4)), button("\u2212", "Zoom out", () => view?.zoomBy(1 / 1.4)), button("Reset", "Reset: show the whole network again", () => view?.reset())),
  ].filter(Boolean);
  const made = figure("interactions", "Network of interactions", {
    controls,
    hint: "Drag an item to move it. Pinch, or turn the wheel with Ctrl pressed, to zoom. Click an item for its details.",
    note:
      "The size of an item shows how often it occurs, and the width of a line shows how strong the effect is." +
      (data.isPosterior ? ` The stronger the colour, the more probable it is that the interaction is present. An interaction is called present if it multiplies or divides the rate by at least ${number(Math.exp(data.payload.model.least_effect), 2)}.` : ""),
  });
  let view = null;
  let width = 800;
  const draw = () => {
    const edges = chosenEdges(data.edges, state);
    view = drawNetwork(made, edges, width, page);
  };
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

/**
 * Return the first value of the filter by certainty. For a posterior it is 0.5, or less if fewer than
 * ten interactions reach 0.5. Otherwise it is 0.
 */
function firstCertainty(data) {
  if (!data.isPosterior) return 0;
  const ranked = data.edges.map((edge) => edge.certainty).sort((a, b) => b - a);
  return Math.min(0.5, Math.floor(100 * (ranked[Math.min(9, ranked.length - 1)] ?? 0)) / 100);
}

function strength(effect) {
  return `\u00d7\u2009${number(Math.exp(Math.abs(effect)), 3)}`;
}

/** Compute the positions of the items by a simulation of forces. They depend only on the edges. */
function layout(items, edges, radius, data) {
  const at = new Map(items.map((item, place) => [item, place]));
  const nodes = items.map((item, place) => ({ item, r: radius(item), index: place }));
  const links = edges.map((edge) => ({ source: at.get(edge.from), target: at.get(edge.to), edge }));
  const room = (node) => Math.max(node.r + 9, 0.36 * textWidth(data.short[node.item], 12) + 7);
  forceSimulation(nodes)
    .force("link", forceLink(links).distance(74).strength(0.5))
    .force("charge", forceManyBody().strength(-230))
    .force("collide", forceCollide(room).iterations(2))
    .force("x", forceX(0).strength(0.06))
    .force("y", forceY(0).strength(0.1))
    .stop()
    .tick(320);
  return { nodes, links };
}

/** Stretch the positions to the size of the drawing. Letters keep their size. */
function stretch(nodes, width, height) {
  for (const [axis, room] of [["x", width - 110], ["y", height - 70]]) {
    const values = nodes.map((node) => node[axis]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const by = Math.min(Math.max(room / Math.max(high - low, 1), 0.6), 2.4);
    nodes.forEach((node) => (node[axis] = (node[axis] - (low + high) / 2) * by));
  }
}

function drawNetwork(made, edges, width, page) {
  const { data } = page;
  const items = [...new Set(edges.flatMap((edge) => [edge.from, edge.to]))].sort((a, b) => a - b);
  if (!items.length) {
    replace(made.body, h("p", {}, "No interaction satisfies these conditions."));
    return null;
  }
  const share = (item) => data.frequency?.[item] ?? 0.1;
  const top = Math.max(...items.map(share), 1e-9);
  const radius = (item) => 4 + 13 * Math.sqrt(share(item) / top);
  const { nodes, links } = layout(items, edges, radius, data);
  const strongest = Math.max(...edges.map((edge) => Math.abs(edge.effect)));
  const thickness = (edge) => 0.8 + (2.8 * Math.abs(edge.effect)) / strongest;
  const height = Math.round(Math.min(Math.max(0.62 * width, 340), 640));
  stretch(nodes, width, height);
  const pairs = new Set(edges.map((edge) => `${edge.from}>${edge.to}`));
  const lines = links.map(({ source, target, edge }) => {
    const both = pairs.has(`${edge.to}>${edge.from}`);
    const group = s(
      "g",
      { class: edge.effect > 0 ? "edge promotes" : "edge inhibits", opacity: edge.opacity },
      s("path", { class: "edge-line", "stroke-width": thickness(edge) }),
      s("path", { class: edge.effect > 0 ? "edge-head" : "edge-bar", "stroke-width": thickness(edge) }),
      s("title", {}, `${data.labels[edge.from].slice(0, 200)} \u2192 ${data.labels[edge.to].slice(0, 200)}: ${factor(edge.effect)}`),
    );
    return { group, source: nodes[source.index ?? source], target: nodes[target.index ?? target], edge, bend: both ? 0.22 : 0.1 };
  });
  const spots = nodes.map((node) => nodeMark(node, page));
  const inner = s("g", {}, s("g", {}, lines.map((line) => line.group)), s("g", {}, spots));
  const svg = drawing(width, height, s("rect", { width, height, class: "ground" }), inner);
  const place = () => {
    lines.forEach((line) => placeLine(line, thickness(line.edge)));
    nodes.forEach((node, k) => {
      spots[k].setAttribute("transform", `translate(${node.x.toFixed(1)},${node.y.toFixed(1)})`);
      // The label is placed above or below the item, on the side with fewer lines.
      const ends = lines.filter((line) => line.source === node || line.target === node);
      const lower = ends.filter((line) => (line.source === node ? line.target : line.source).y > node.y);
      spots[k].querySelector("text").setAttribute("y", 2 * lower.length > ends.length ? -node.r - 6 : node.r + 13);
    });
  };
  place();
  replace(made.body, svg);
  makeMovable(spots, nodes, place);
  roving(spots);
  highlight(spots, nodes, lines, made, page);
  const shown = made.status.textContent;
  if (!shown.startsWith("Drag")) made.status.textContent = "";
  return makeZoomable(svg, inner, nodes, width, height, data);
}

function nodeMark(node, page) {
  const { data } = page;
  const open = () => page.openItem(node.item);
  return s(
    "g",
    {
      class: "node", role: "button",
      on: { click: open, keydown: (e) => (e.key === "Enter" || e.key === " ") && (e.preventDefault(), open()) },
    }, // prettier-ignore
    s("circle", { r: node.r }),
    s("text", { y: node.r + 12, "text-anchor": "middle", class: "label" }, data.short[node.item]),
    s("title", {}, shorten(data.labels[node.item], 200), data.frequency ? ` (${percent(data.frequency[node.item])})` : ""),
  );
}

/** Draw a bent line that ends in a head or a bar. */
function placeLine({ group, source, target, edge, bend }, width) {
  const [dx, dy] = [target.x - source.x, target.y - source.y];
  const far = Math.hypot(dx, dy) || 1;
  const middle = [(source.x + target.x) / 2 + bend * dy, (source.y + target.y) / 2 - bend * dx];
  const away = (from, toward, by) => {
    const [x, y] = [toward[0] - from[0], toward[1] - from[1]];
    const d = Math.hypot(x, y) || 1;
    return [from[0] + (x / d) * by, from[1] + (y / d) * by];
  };
  const head = 5 + 1.6 * width;
  const start = away([source.x, source.y], middle, Math.min(source.r + 1, far / 3));
  const tip = away([target.x, target.y], middle, Math.min(target.r + 2, far / 3));
  const end = edge.effect > 0 ? away(tip, middle, head * 0.8) : tip;
  const text = (p) => `${p[0].toFixed(1)},${p[1].toFixed(1)}`;
  group.childNodes[0].setAttribute("d", `M${text(start)}Q${text(middle)} ${text(end)}`);
  const [ux, uy] = [tip[0] - middle[0], tip[1] - middle[1]];
  const d = Math.hypot(ux, uy) || 1;
  const [nx, ny] = [-uy / d, ux / d];
  const wide = edge.effect > 0 ? head * 0.45 : 3.5 + width;
  const base = edge.effect > 0 ? away(tip, middle, head) : tip;
  const left = [base[0] + nx * wide, base[1] + ny * wide];
  const right = [base[0] - nx * wide, base[1] - ny * wide];
  group.childNodes[1].setAttribute("d", edge.effect > 0 ? `M${text(tip)}L${text(left)}L${text(right)}Z` : `M${text(left)}L${text(right)}`);
}

function makeMovable(spots, nodes, place) {
  spots.forEach((spot, k) => {
    select(spot).call(
      drag().on("drag", (event) => {
        nodes[k].x += event.dx;
        nodes[k].y += event.dy;
        place();
      }),
    );
  });
}

/**
 * When an item is pointed at or has the focus, dim all others except its neighbours, and say on how
 * many items it acts and how many act on it.
 */
function highlight(spots, nodes, lines, made, page) {
  const { data } = page;
  const show = (item) => {
    const near = new Set([item]);
    for (const { edge } of lines) {
      if (edge.from === item) near.add(edge.to);
      if (edge.to === item) near.add(edge.from);
    }
    nodes.forEach((node, k) => spots[k].classList.toggle("dim", item >= 0 && !near.has(node.item)));
    for (const { group, edge } of lines) group.classList.toggle("dim", item >= 0 && edge.from !== item && edge.to !== item);
    if (item < 0) return;
    const from = lines.filter(({ edge }) => edge.from === item).length;
    const to = lines.filter(({ edge }) => edge.to === item).length;
    replace(made.status, page.name(item), `: in this figure it acts on ${counted(from, "item")}, and ${counted(to, "item")} act${to === 1 ? "s" : ""} on it.`);
  };
  spots.forEach((spot, k) => {
    const item = nodes[k].item;
    spot.addEventListener("mouseenter", () => show(item));
    spot.addEventListener("focus", () => show(item));
    spot.addEventListener("mouseleave", () => show(-1));
    spot.addEventListener("blur", () => show(-1));
  });
  return data;
}

function makeZoomable(svg, inner, nodes, width, height, data) {
  const xs = nodes.flatMap((node) => {
    const half = Math.max(node.r, textWidth(data.short[node.item], 12) / 2) + 6;
    return [node.x - half, node.x + half];
  });
  const ys = nodes.flatMap((node) => [node.y - node.r - 20, node.y + node.r + 20]);
  const [left, right, upper, lower] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const scale = Math.min(width / (right - left), height / (lower - upper), 1.25);
  const whole = zoomIdentity
    .translate(width / 2, height / 2)
    .scale(scale)
    .translate(-(left + right) / 2, -(upper + lower) / 2);
  const zooming = zoom()
    .scaleExtent([scale / 3, 8])
    // The wheel alone and a single finger scroll the page, as on the rest of the page.
    .filter((event) => (event.type === "wheel" ? event.ctrlKey || event.metaKey : event.touches ? event.touches.length > 1 : !event.button))
    .on("zoom", (event) => inner.setAttribute("transform", event.transform.toString()));
  const canvas = select(svg).call(zooming).on("dblclick.zoom", null);
  svg.style.setProperty("touch-action", "pan-y");
  zooming.transform(canvas, whole);
  return { zoomBy: (k) => zooming.scaleBy(canvas, k), reset: () => zooming.transform(canvas, whole) };
}

function interactionTable(page) {
  const { data } = page;
  const certain = data.edges.some((edge) => edge.certainty !== null);
  const columns = [
    { title: "item", text: true, value: (e) => data.labels[e.from], show: (e) => page.item(e.from) },
    { title: "acts on", text: true, value: (e) => data.labels[e.to], show: (e) => page.item(e.to) },
    { title: "effect on the rate", value: (e) => Math.exp(e.effect), show: (e) => h("span", { class: e.effect > 0 ? "promotes" : "inhibits" }, factor(e.effect)) },
    { title: "log effect", value: (e) => e.effect, show: (e) => number(e.effect, 3) },
    certain ? { title: data.isPosterior ? "probability that it is present" : "probability of this sign", value: (e) => e.certainty, show: (e) => number(e.certainty, 2) } : null,
    data.isPosterior
      ? {
          title: "90% interval of the factor", value: (e) => e.high - e.low,
          csv: [["low", (e) => Math.exp(e.low)], ["high", (e) => Math.exp(e.high)]],
          show: (e) => `${factor(e.low)} to ${factor(e.high)}`,
        } // prettier-ignore
      : null,
  ].filter(Boolean);
  const made = table("interactions", columns, data.edges, { caption: "Interactions", noun: "interaction", page: 10 });
  return h("details", {}, h("summary", {}, "All interactions as a table"), made.element);
}
