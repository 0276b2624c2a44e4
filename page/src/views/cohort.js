// (f) The samples by pseudo-time, with the items that each has.

import { scaleLinear } from "d3-scale";

import { axisLeft, colourBar, drawing, raster } from "../core/axes.js";
import { sequential } from "../core/colours.js";
import { drawByWidth, h, replace, s } from "../core/dom.js";
import { figure, slider } from "../core/figure.js";
import { counted, fitted, number, percent, shorten, textWidth } from "../core/text.js";
import { comparisonPart } from "./comparison.js";
import { survivalPart } from "./survival.js";

const TOP = 92; // height of the panel of times
const ROW = 16;

export const cohort = {
  id: "cohort",
  title: "The cohort in time",
  short: "Timeline",

  render(root, page) {
    const { samples, payload } = page.data;
    if (samples?.time) {
      root.append(
        h("p", { class: "lead" }, "The samples are sorted from early to late, by the mean of the time at which each sample was probably taken. These times were not measured: the model infers them from the items of each sample."),
        timeline(page),
      );
    } else root.append(h("p", {}, "The times of the samples are not shown: the report was made without samples, or their times were not computed."));
    if (payload.survival) root.append(survivalPart(page));
    if (payload.comparison) root.append(comparisonPart(page));
  },
};

/** Sort the samples by time, and spread them over at most `columns` columns. */
export function arrange(samples, columns) {
  const { mean } = samples.time;
  const order = mean.map((_, row) => row).filter((row) => mean[row] !== null);
  order.sort((a, b) => mean[a] - mean[b] || a - b);
  const count = Math.min(order.length, columns);
  const bins = Array.from({ length: count }, (_, c) =>
    order.slice(Math.floor((c * order.length) / count), Math.floor(((c + 1) * order.length) / count)),
  );
  return { order, bins };
}

function timeline(page) {
  const { data } = page;
  const state = { items: Math.min(data.n, 20) };
  const made = figure("timeline", "Samples by pseudo-time", {
    controls: [data.n > 2 ? slider("items", { min: 2, max: Math.min(data.n, 120), value: state.items, show: (x) => `${x} most frequent` }, (x) => update({ items: x })) : null].filter(Boolean),
    hint: "Point at a sample to read its time and items. Click it to see it in the section \u201cOne patient\u201d.",
    note: "",
  });
  let width = 800;
  const draw = () => drawTimeline(made, page.itemsByFrequency.slice(0, state.items), width, page);
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

/**
 * Return three arrays [item][column]. `share` is the share of the samples of the column that have
 * the item. `early` is the sum, over these samples, of the arrival time of the item divided by the
 * time of the sample. `known` is the number of samples in this sum.
 */
function cells(items, bins, samples) {
  const row = new Map(items.map((item, at) => [item, at]));
  const share = items.map(() => new Float64Array(bins.length));
  const early = items.map(() => new Float64Array(bins.length));
  const known = items.map(() => new Float64Array(bins.length));
  bins.forEach((bin, column) => {
    for (const sample of bin) {
      const arrivals = samples.arrivals?.[sample] ?? null;
      const time = samples.time.mean[sample];
      samples.sets[sample].forEach((item, k) => {
        const at = row.get(item);
        if (at === undefined) return;
        share[at][column] += 1 / bin.length;
        if (arrivals && time > 0) {
          early[at][column] += arrivals[k] / time;
          known[at][column] += 1;
        }
      });
    }
  });
  return { share, early, known };
}

function drawTimeline(made, items, width, page) {
  const { data } = page;
  const { samples } = data;
  const left = Math.round(Math.min(Math.max(...items.map((i) => textWidth(data.short[i], 11.5))) + 12, width * 0.34));
  const inner = width - left - 10;
  const { order, bins } = arrange(samples, Math.max(Math.floor(inner), 1));
  const { share, early, known } = cells(items, bins, samples);
  const mean = (row) => sum(early[row]) / Math.max(sum(known[row]), 1);
  const rows = items.map((_, k) => k);
  if (samples.arrivals) rows.sort((a, b) => mean(a) - mean(b));
  const colours = sequential();
  const wide = inner / bins.length;
  const shade = (at, column) => {
    const row = rows[at];
    const there = share[row][column];
    if (!there) return null;
    const when = known[row][column] ? early[row][column] / known[row][column] : 0.5;
    return colours(when, Math.max(0.25, Math.min(1, there * 1.15)));
  };
  const height = TOP + items.length * ROW + 46;
  const cursor = s("g", { class: "cursor", "data-only": "screen" });
  const svg = drawing(
    width,
    height,
    timePanel(samples, order, left, inner),
    raster(bins.length, items.length, shade, { x: left, y: TOP + 8, width: inner, height: items.length * ROW }),
    rows.map((row, at) => [
      s("text", { x: left - 7, y: TOP + 8 + at * ROW + 12, "text-anchor": "end", class: "label" }, fitted(data.short[items[row]], 12, left - 8)),
      s("line", { x1: left, x2: left + inner, y1: TOP + 8 + (at + 1) * ROW, y2: TOP + 8 + (at + 1) * ROW, class: "grid" }),
    ]),
    samples.arrivals ? colourBar(left, height - 30, Math.min(inner, 220), (x) => colours(x), ["arrived early", "arrived late"]) : null,
    cursor,
  );
  replace(made.body, svg);
  const find = (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) * width) / box.width - left;
    if (x < 0 || x >= inner || !order.length) return -1;
    return Math.min(Math.floor((x / inner) * order.length), order.length - 1);
  };
  const show = (at) => {
    const sample = order[at];
    const set = samples.sets[sample];
    const x = left + ((at + 0.5) / order.length) * inner;
    replace(cursor, s("line", { x1: x, x2: x, y1: 0, y2: TOP + 8 + items.length * ROW, class: "beam-line" }));
    replace(
      made.status,
      h("bdi", { class: "label" }, shorten(samples.labels[sample], 40)),
      `: time ${number(samples.time.mean[sample], 3)} (90% interval: ${number(samples.time.low[sample], 2)} to ${number(samples.time.high[sample], 2)}); `,
      set.length ? set.slice(0, 12).flatMap((item, k) => [k ? ", " : "", page.name(item)]) : "no items",
      set.length > 12 ? ` and ${set.length - 12} more` : "",
    );
  };
  svg.addEventListener("pointermove", (event) => find(event) >= 0 && show(find(event)));
  svg.addEventListener("click", (event) => {
    if (find(event) < 0) return;
    page.show("patient");
    page.openSample(order[find(event)]);
  });
  const exact = samples.arrivals ? samples.arrivals.filter(Boolean).length : 0;
  const left_ = samples.count - exact;
  replace(
    made.note,
    `${counted(order.length, "sample")}${wide < 1 ? " (several samples share a column)" : ""}. The upper part shows the mean and the 90% interval of the time of each sample. `,
    samples.arrivals ? `The colour shows how early an item arrived, compared with the time at which the sample was taken.` : "",
    left_ && samples.arrivals ? ` For ${counted(left_, "sample")} with many items (${percent(left_ / samples.count)}) the arrival times were not computed. The items of these samples have the middle colour.` : "",
  );
}

const sum = (values) => values.reduce((a, b) => a + b, 0);

function timePanel(samples, order, left, inner) {
  const { mean, low, high } = samples.time;
  const count = order.length;
  // A few samples may be far later than all others. The axis does not extend to these samples.
  const highs = order.map((row) => high[row] ?? mean[row]).sort((a, b) => a - b);
  const top = 1.1 * Math.max(highs[Math.floor(0.985 * (count - 1))] ?? 1, 1e-9);
  const y = scaleLinear([0, top], [TOP, 14]).clamp(true);
  const x = (at) => left + ((at + 0.5) / count) * inner;
  const step = Math.max(1, Math.floor(count / (2 * inner)));
  const places = order.map((_, at) => at).filter((at) => at % step === 0);
  const path = (value) => places.map((at, k) => `${k ? "L" : "M"}${x(at).toFixed(1)},${y(value(order[at])).toFixed(1)}`).join("");
  const back = [...places].reverse().map((at) => `L${x(at).toFixed(1)},${y(low[order[at]] ?? mean[order[at]]).toFixed(1)}`).join("");
  return s(
    "g",
    {},
    s("path", { d: `${path((row) => high[row] ?? mean[row])}${back}Z`, class: "area" }),
    s("path", { d: path((row) => mean[row]), class: "curve" }),
    axisLeft(y, left, { title: "", ticks: 3 }),
    s("text", { x: left + 6, y: 12, class: "axis-title", "text-anchor": "start" }, highs[count - 1] > top ? `time (mean and 90% interval; highest: ${number(highs[count - 1], 2)})` : "time (mean and 90% interval)"),
  );
}
