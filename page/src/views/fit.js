// (g) Does the model describe the data, and what did the import do with them?

import { scaleLinear, scaleLog } from "d3-scale";

import { axisBelow, axisLeft, drawing } from "../core/axes.js";
import { drawByWidth, h, prose, replace, s } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { table } from "../core/table.js";
import { counted, integer, number } from "../core/text.js";

const FAR = 3; // a difference of more than this many standard deviations is marked

export const fit = {
  id: "fit",
  title: "Does the model fit, and which data were read?",
  short: "Fit and data",

  render(root, page) {
    const { goodness, findings } = page.data.payload;
    if (findings?.length) root.append(findingsPart(findings));
    if (goodness) {
      root.append(
        h("p", { class: "lead" }, summary(goodness)),
        h("div", { class: "two" }, sizesFigure(goodness), itemsFigure(goodness, page)),
        pairsTable(goodness, page),
      );
    }
    root.append(importPart(page));
  },
};

/** Show the findings of the tests of the fit, the most severe first. */
function findingsPart(findings) {
  const severe = (one) => one.severity === "warning";
  const ranked = [...findings.filter(severe), ...findings.filter((one) => !severe(one))];
  return h(
    "div",
    { class: "findings" },
    ranked.map((one) =>
      h(
        "div",
        { class: severe(one) ? "callout warning" : "callout", role: "note" },
        h("p", {}, severe(one) ? h("strong", {}, "Warning: ") : null, prose(String(one.text))),
        one.advice ? h("p", { class: "note" }, prose(String(one.advice))) : null,
      ),
    ),
  );
}

function summary(goodness) {
  const far = (zs) => zs.filter((z) => Math.abs(z) > 2).length;
  const items = goodness.items.z;
  return (
    `For ${far(items)} of ${counted(items.length, "item")}, the observed number of samples differs from the number that the model expects by more than two standard deviations. ` +
    `About ${number(items.length * 0.046, 2)} would be expected by chance. For ${integer(goodness.pairs.beyond)} of ${counted(goodness.pairs.count, "pair")} of items, the difference is also larger than two standard deviations. ` +
    `About ${number(goodness.pairs.count * 0.046, 2)} would be expected by chance.`
  );
}

function sizesFigure(goodness) {
  const { observed, expected } = goodness.sizes;
  const made = figure("set-sizes", "Number of items per sample", { note: "Bars: observed numbers of samples. Dots: numbers that the model expects." });
  drawByWidth(made.body, (width) => {
    let last = observed.length - 1;
    const total = sumOf(observed);
    while (last > 4 && observed[last] === 0 && expected[last] < total * 1e-4) last -= 1;
    const height = 230;
    const x = scaleLinear([-0.6, last + 0.6], [44, width - 8]);
    const y = scaleLinear([0, Math.max(...observed, ...expected)], [height - 42, 22]);
    const wide = Math.max(Math.min(0.8 * (x(1) - x(0)), 28), 0.8);
    const marks = [];
    for (let k = 0; k <= last; k += 1) {
      marks.push(
        s("rect", { x: x(k) - wide / 2, y: y(observed[k]), width: wide, height: y(0) - y(observed[k]), class: "bar soft" }),
        s("circle", { cx: x(k), cy: y(expected[k]), r: Math.min(3.2, Math.max(wide / 2.4, 1.4)), class: "dot" }),
      );
    }
    replace(made.body, drawing(width, height, axisLeft(y, 44, { title: "samples", grid: width - 52 }), axisBelow(x, height - 42, { title: "items per sample", ticks: Math.min(10, last), format: (t) => (Number.isInteger(t) && t >= 0 ? String(t) : "") }), marks));
  });
  return made.element;
}

const sumOf = (values) => values.reduce((a, b) => a + b, 0);

function itemsFigure(goodness, page) {
  const { data } = page;
  const { observed, expected, z } = goodness.items;
  const made = figure("item-frequencies", "Items: observed and expected", { hint: "\u00a0", note: `Observed and expected number of samples with each item, on logarithmic axes. On the line, the two numbers are equal. If they differ by more than ${FAR} standard deviations, the dot is orange.` });
  drawByWidth(made.body, (width) => {
    const height = Math.min(width, 330);
    const values = [...observed, ...expected].filter((x) => x > 0);
    const range = [Math.max(0.5, 0.8 * Math.min(...values)), 1.2 * Math.max(...values)];
    const x = scaleLog(range, [46, width - 10]);
    const y = scaleLog(range, [height - 42, 22]);
    const keep = (v) => Math.max(v, range[0]);
    const dots = observed.map((count, item) =>
      s(
        "circle",
        {
          cx: x(keep(expected[item])), cy: y(keep(count)), r: 3.6,
          class: Math.abs(z[item]) > FAR ? "dot far" : "dot light",
          on: { mouseenter: () => say(item), click: () => page.openItem(item) },
        }, // prettier-ignore
        s("title", {}, data.short[item]),
      ),
    );
    const round = (t) => (/^[125]0*$/.test(String(t)) ? integer(t) : "");
    replace(
      made.body,
      drawing(width, height, axisLeft(y, 46, { title: "observed", format: round, ticks: 4 }), axisBelow(x, height - 42, { title: "expected", format: round, ticks: 4 }), s("line", { x1: x(range[0]), y1: y(range[0]), x2: x(range[1]), y2: y(range[1]), class: "guide" }), dots),
    );
  });
  function say(item) {
    replace(made.status, page.name(item), `: observed ${integer(observed[item])}, expected ${number(expected[item], 3)} (z ${number(z[item], 2)})`);
  }
  return made.element;
}

function pairsTable(goodness, page) {
  const { data } = page;
  const { pairs } = goodness;
  const rows = pairs.a.map((a, k) => ({ a, b: pairs.b[k], observed: pairs.observed[k], expected: pairs.expected[k], z: pairs.z[k] }));
  if (!rows.length) return null;
  const made = table(
    "pairs",
    [
      { title: "item", text: true, value: (row) => data.labels[row.a], show: (row) => page.item(row.a) },
      { title: "other item", text: true, value: (row) => data.labels[row.b], show: (row) => page.item(row.b) },
      { title: "observed", value: (row) => row.observed, show: (row) => integer(row.observed) },
      { title: "expected", value: (row) => row.expected, show: (row) => number(row.expected, 3) },
      { title: "z", value: (row) => row.z, show: (row) => number(row.z, 2) },
    ],
    rows,
    { caption: "Pairs that the model describes worst", noun: "pair", page: 8 },
  );
  return h("div", {}, h("h3", {}, "Pairs that the model describes worst"), h("p", { class: "note" }, "Observed and expected number of samples with both items. z: the difference divided by its standard deviation."), made.element);
}

/** Show what the import read, dropped and merged. */
function importPart(page) {
  const { payload } = page.data;
  const found = payload.import;
  if (!found) return h("div", {}, h("h3", {}, "What was read"), h("p", {}, "The report has no information about how the data were read."));
  const lines = [
    `Read as ${found.kind}.`,
    `Samples: ${integer(found.samples_read)} read, ${integer(found.samples_kept)} kept.`,
    `Items: ${integer(found.items_read)} read, ${integer(found.items_kept)} kept.`,
    `Items per sample: median ${number(found.median_size)}, at most ${integer(found.largest_size)}; ${counted(found.empty_samples, "sample")} without any item.`,
  ];
  const dropped = [
    ...found.dropped_samples.map((part) => ["sample", part]),
    ...found.dropped_items.map((part) => ["item", part]),
  ];
  const merged = Object.entries(found.merged ?? {});
  return h(
    "div",
    {},
    h("h3", {}, "What was read, dropped and merged"),
    h("ul", {}, lines.map((line) => h("li", {}, line))),
    dropped.map(([noun, part]) => {
      const count = part.count ?? part.names.length; // the report lists only the first names
      return names(`${counted(count, noun)} dropped, ${part.reason}`, part.names, count);
    }),
    merged.map(([name, old]) => names(`${counted(old.length, "item")} merged into ${name}`, old)),
    found.many_items?.length ? names(`${counted(found.many_items.length, "sample")} with very many items. The model treats such samples as late, even if they were not taken late`, found.many_items.map((x) => `${x.sample} (${x.size})`)) : null,
    (found.notes ?? []).map((note) => h("p", { class: "note" }, note)),
  );
}

function names(title, list, count = list.length) {
  const shown = list.slice(0, 200);
  return h(
    "details",
    {},
    h("summary", {}, title),
    h("p", { class: "names" }, shown.map((name, k) => [k ? ", " : "", h("bdi", {}, name.slice(0, 80))]), count > shown.length ? ` and ${integer(count - shown.length)} more` : ""),
  );
}
