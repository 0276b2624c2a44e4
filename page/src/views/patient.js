// (e) One patient: the user chooses a sample or selects items, and the page computes the answers from
// theta.

import { scaleLinear } from "d3-scale";

import { axisBelow, drawing } from "../core/axes.js";
import { drawByWidth, h, newId, prose, replace, s } from "../core/dom.js";
import { button, figure } from "../core/figure.js";
import { table } from "../core/table.js";
import { counted, fitted, number, percent, probability, range, searchable, shorten, textWidth } from "../core/text.js";
import { countVerdicts, VERDICTS, verdictMark } from "../core/verdict.js";
import { averageAnswers, averageNext } from "../maths/average.js";
import { MAX_SET } from "../maths/lattice.js";
import { findPair } from "./verdicts.js";

const OFFERED = 30;
const LISTED = 60;
const SLICE = 60; // milliseconds of computation after which the page can react to input again

export const patient = {
  id: "patient",
  title: "One patient",
  short: "A patient",

  render(root, page) {
    const { data } = page;
    if (!data.computes) {
      root.append(h("p", {}, prose("In this model, samples are not observed at a constant rate. For such models this page cannot compute answers. Use the commands `sequela time` and `sequela next`.")));
      return;
    }
    root.append(
      h("p", { class: "lead" }, "Choose a sample, or select items, to see when it was probably taken, in which order its items probably arrived, and which item comes next. The page computes the answers itself, even for sets that no sample has."),
      data.isPosterior
        ? h("p", { class: "note" }, `The answers are averages over ${counted(data.payload.model.draws.count, "model")} drawn from the posterior. So they include the uncertainty about the model.`)
        : "",
    );
    const state = { set: firstSet(page), sample: null };
    const answers = h("div", { class: "answers" });
    const picker = itemPicker(page, state, () => show());
    const chooser = data.samples ? sampleChooser(page, (row) => openSample(row)) : null;
    root.append(h("div", { class: "pick no-print" }, chooser?.element, picker.element), answers);
    let work = 0;
    function show() {
      picker.draw();
      work += 1;
      const own = work;
      answerInSlices(page, state, (parts) => replace(answers, parts), () => own === work);
    }
    function openSample(row) {
      const set = data.samples.sets[row];
      state.sample = row;
      state.set = [...set];
      show();
    }
    page.openSample = (row) => {
      openSample(row);
      document.getElementById("patient").scrollIntoView({ block: "start" });
    };
    show();
  },
};

/** Return the set that is shown first: if possible, that of a sample with 3 to 5 frequent items. */
function firstSet(page) {
  const sets = page.data.samples?.sets ?? [];
  const common = new Set(page.itemsByFrequency.slice(0, 12));
  const found = sets.find((set) => set.length >= 3 && set.length <= 5 && set.every((i) => common.has(i)));
  return [...(found ?? sets.find((set) => set.length && set.length <= MAX_SET) ?? page.itemsByFrequency.slice(0, 2))];
}

/** Make the search of samples. */
function sampleChooser(page, open) {
  const { samples } = page.data;
  const id = newId("sample");
  const list = h("ul", { class: "found plain" });
  const input = h("input", { id, type: "search", placeholder: "name of a sample", autocomplete: "off" });
  const keys = samples.labels.map(searchable);
  const search = () => {
    const query = searchable(input.value.trim());
    const rows = [];
    for (let row = 0; row < keys.length && rows.length < 8; row += 1) if (keys[row].includes(query)) rows.push(row);
    replace(
      list,
      rows.map((row) =>
        h("li", {}, button(h("bdi", {}, shorten(samples.labels[row], 40)), null, () => open(row), { class: "link" }), h("span", { class: "note" }, ` (${counted(samples.sets[row].length, "item")})`)),
      ),
      rows.length ? null : h("li", { class: "note" }, "No sample has this name."),
    );
  };
  input.addEventListener("input", search);
  search();
  return { element: h("div", { class: "pick-part" }, h("label", { for: id }, "A sample of the cohort"), input, list) };
}

/** Make the chips that select items. */
function itemPicker(page, state, change) {
  const { data } = page;
  const id = newId("items");
  const chips = h("div", { class: "chips" });
  const input = h("input", { id, type: "search", placeholder: "search items", autocomplete: "off" });
  const keys = data.labels.map(searchable);
  const toggle = (item) => {
    const at = state.set.indexOf(item);
    if (at >= 0) state.set.splice(at, 1);
    else state.set.push(item);
    state.sample = null;
    change();
  };
  const draw = () => {
    const query = searchable(input.value.trim());
    const found = page.itemsByFrequency.filter((item) => !state.set.includes(item) && keys[item].includes(query));
    const chip = (item) =>
      h("button", { type: "button", class: "chip", "aria-pressed": String(state.set.includes(item)), on: { click: () => toggle(item) } }, h("bdi", {}, shorten(data.labels[item], 24)));
    replace(
      chips,
      [...state.set].slice(0, LISTED).map(chip),
      found.slice(0, OFFERED).map(chip),
      found.length > OFFERED ? h("span", { class: "note" }, `and ${found.length - OFFERED} more; use the search`) : null,
    );
  };
  input.addEventListener("input", draw);
  const clear = button("Clear", "Clear: remove all items", () => {
    state.set.length = 0;
    state.sample = null;
    change();
  });
  const element = h("div", { class: "pick-part wide" }, h("label", { for: id }, "Items that are present"), h("span", { class: "row" }, input, clear), chips);
  return { element, draw };
}

function heading(page, state) {
  const { data } = page;
  const { samples } = data;
  const parts = [];
  if (state.sample !== null) parts.push("Sample ", h("bdi", { class: "label" }, shorten(samples.labels[state.sample], 60)), ": ");
  if (!state.set.length) parts.push("no items");
  state.set.slice(0, LISTED).forEach((item, k) => parts.push(k ? ", " : "", page.name(item)));
  if (state.set.length > LISTED) parts.push(` and ${state.set.length - LISTED} more`);
  return h("h3", { class: "patient-set", "aria-live": "polite" }, parts);
}

/** Compute the answers in short steps, so that the page stays responsive; stop if current() is false. */
function answerInSlices(page, state, show, current) {
  const { data } = page;
  const set = [...state.set].sort((a, b) => a - b);
  const head = heading(page, state);
  if (set.length > MAX_SET) {
    show(tooLarge(page, state, set, head));
    return;
  }
  const work = averageAnswers(data.chains(), set);
  const proceed = () => {
    if (!current()) return;
    const until = performance.now() + SLICE;
    let step = work.next();
    while (!step.done && performance.now() < until) step = work.next();
    if (step.done) {
      show(answerParts(page, set, head, step.value));
      return;
    }
    show([head, h("p", { class: "note", role: "status" }, `Averaging over the posterior: ${percent(step.value)}`)]);
    setTimeout(proceed);
  };
  proceed();
}

function tooLarge(page, state, set, head) {
  const { samples } = page.data;
  const stored =
    state.sample !== null && samples.time
      ? `This sample was probably taken at about ${number(samples.time.mean[state.sample], 3)} (90% interval: ${number(samples.time.low[state.sample], 3)} to ${number(samples.time.high[state.sample], 3)}). `
      : "";
  return [
    head,
    h("p", { class: "callout" }, stored, prose(`This page can compute times and orders of sets of up to ${MAX_SET} items, and this set has ${set.length}. Remove items, or use the commands \`sequela time\` and \`sequela order\`.`)),
    nextFigure(page, averageNext(page.data.chains(), set)),
  ];
}

function answerParts(page, set, head, { time, past, orders, next }) {
  const average = 1 / page.data.payload.model.stop_rate;
  return [
    head,
    h("p", { class: "answer" }, "A sample with this set was probably taken at about ", h("strong", {}, number(time.mean, 3)), ` (90% interval: ${number(time.quantile(0.05), 3)} to ${number(time.quantile(0.95), 3)}). The mean time of all samples is ${number(average, 3)}.`),
    h("div", { class: "two" }, timeFigure(page, time), nextFigure(page, next)),
    set.length ? orderPart(page, set, past, orders) : null,
  ];
}

function timeFigure(page, time) {
  const made = figure("time-density", "When was it taken?", { note: "The curve is the probability density of the observation time, given the set. The shaded area contains 90% of the probability. The vertical line is the mean." });
  drawByWidth(made.body, (width) => {
    const end = Math.min(time.quantile(0.997), time.end);
    const height = 190;
    const steps = Math.min(240, Math.max(80, Math.round(width / 3)));
    const ts = Array.from({ length: steps + 1 }, (_, k) => (end * k) / steps);
    const ys = ts.map(time.density);
    const x = scaleLinear([0, end], [12, width - 12]);
    const y = scaleLinear([0, Math.max(...ys)], [height - 40, 10]);
    const [low, high] = [time.quantile(0.05), time.quantile(0.95)];
    const line = ts.map((t, k) => `${k ? "L" : "M"}${x(t).toFixed(1)},${y(ys[k]).toFixed(1)}`).join("");
    const inside = ts.filter((t) => t > low && t < high);
    const area = [low, ...inside, high].map((t, k) => `${k ? "L" : "M"}${x(t).toFixed(1)},${y(time.density(t)).toFixed(1)}`).join("");
    replace(
      made.body,
      drawing(
        width,
        height,
        s("path", { d: `${area}L${x(high).toFixed(1)},${y(0)}L${x(low).toFixed(1)},${y(0)}Z`, class: "area" }),
        s("path", { d: line, class: "curve" }),
        s("line", { x1: x(time.mean), x2: x(time.mean), y1: y(0), y2: y(time.density(time.mean)), class: "mean" }),
        axisBelow(x, y(0), { title: "time of observation", ticks: Math.max(3, width / 90) }),
      ),
    );
  });
  return made.element;
}

function nextFigure(page, next) {
  const { data } = page;
  const made = figure("next-items", "What comes next?", {
    note: Number.isFinite(next.nextItemTime)
      ? `Bar and first number: the probability that this item is the next one, no matter when. Number in brackets: the probability that this item is the next one and arrives before the sample is observed. With probability ${percent(next.observedFirst)}, the sample is observed before any absent item arrives. The mean time until the next item arrives is ${number(next.nextItemTime, 3)}.`
      : "All items are present.",
  });
  const shown = next.items.slice(0, 10);
  drawByWidth(made.body, (width) => {
    if (!shown.length) return replace(made.body, h("p", {}, "All items are present."));
    const left = Math.min(Math.max(...shown.map(({ item }) => textWidth(data.short[item], 11.5))) + 12, width * 0.4);
    const x = scaleLinear([0, Math.max(...shown.map(({ share }) => share))], [0, width - left - 92]);
    const rows = shown.map(({ item, share, probability }, row) =>
      s(
        "g",
        {},
        s("text", { x: left - 7, y: row * 19 + 14, "text-anchor": "end", class: "label" }, fitted(data.short[item], 12, left - 8)),
        s("rect", { x: left, y: row * 19 + 4, width: Math.max(x(share), 0.5), height: 13, class: "bar" }),
        s("text", { x: left + x(share) + 5, y: row * 19 + 14.5, class: "tick" }, `${percent(share)} (${percent(probability)})`),
      ),
    );
    return replace(made.body, drawing(width, shown.length * 19 + 8, rows));
  });
  return made.element;
}

function orderPart(page, set, past, best) {
  const { data } = page;
  const rows = set.map((item, c) => ({
    item,
    arrival: past.arrival[c],
    place: past.place[c].reduce((sum, p, k) => sum + p * (k + 1), 0),
    first: past.place[c][0],
    last: past.place[c][set.length - 1],
  }));
  rows.sort((a, b) => a.arrival - b.arrival);
  const made = table(
    "patient-arrivals",
    [
      { title: "item", text: true, value: (row) => data.labels[row.item], show: (row) => page.item(row.item) },
      { title: "mean arrival", value: (row) => row.arrival, show: (row) => number(row.arrival, 3) },
      { title: "mean position", value: (row) => row.place, show: (row) => number(row.place, 2) },
      { title: "came first", value: (row) => row.first, show: (row) => probability(row.first) },
      { title: "came last", value: (row) => row.last, show: (row) => probability(row.last) },
    ],
    rows,
    { caption: "Arrival of the items of this set", noun: "item", search: false, page: MAX_SET },
  );
  return [
    h("h3", {}, "In which order did the items arrive?"),
    set.length > 1 ? h("p", { class: "note" }, certainty(page, set)) : null,
    h(
      "ol",
      { class: "orders" },
      best.map(({ order, probability: p }) => h("li", {}, order.flatMap((item, k) => [k ? " \u2192 " : "", page.name(item)]), h("span", { class: "note" }, `  ${percent(p)}`))),
    ),
    made.element,
    set.length > 1 ? beforeTable(page, set, past) : null,
  ];
}

/** Return sentences that say for how many pairs of the set the data can tell the order. */
function certainty(page, set) {
  const { data } = page;
  const pairs = set.flatMap((a, i) => set.slice(i + 1).map((b) => findPair(data, a, b)));
  const { yes, suggests, no, depends, untrusted, unchecked } = countVerdicts(pairs);
  const many = (count) => (count === 0 ? "none" : count === pairs.length ? "all" : String(count));
  const parts = [`can tell ${many(yes)}`, suggests ? `suggest ${many(suggests)}` : null, no && yes + suggests ? `cannot tell ${no}` : null].filter(Boolean);
  const unsure = depends ? ` ${depends === 1 ? "The verdict of one is" : `The verdicts of ${depends} are`} \u201cnot sure\u201d, because the order is opposite in a model in which items influence the observation.` : "";
  const misfit = untrusted ? ` ${untrusted === 1 ? "One is" : `${untrusted} are`} not trusted, because the model does not describe the data.` : "";
  const more = unsure + misfit + (unchecked ? ` ${unchecked === 1 ? "One was" : `${unchecked} were`} not checked.` : "");
  const doubt = yes < pairs.length ? ` Do not rely on the orders of ${yes ? "the other pairs" : "these pairs"}: other models may explain the data equally well with another order.` : "";
  const told = unchecked === pairs.length ? "No pair of items of this set was checked. So it is not known for which pairs the data can tell the order." : `The set has ${counted(pairs.length, "pair")} of items. The data ${parts.join(", ")} of their orders.${more}`;
  return [h("strong", {}, "How certain are these orders? "), `The probabilities below are ${data.isPosterior ? "averages over the posterior" : "those of one model"}. ${told}${doubt}`];
}

/** List P(a before b | set) for all pairs of the set. */
function beforeTable(page, set, past) {
  const { data } = page;
  const rows = [];
  set.forEach((a, i) =>
    set.forEach((b, j) => {
      if (i < j) {
        const ahead = past.before[i][j] >= 0.5;
        const [first, second] = ahead ? [a, b] : [b, a];
        const { low, high, verdict } = findPair(data, first, second);
        rows.push({ first, second, p: ahead ? past.before[i][j] : past.before[j][i], low, high, verdict });
      }
    }),
  );
  rows.sort((x, y) => y.p - x.p);
  const made = table(
    "patient-orders",
    [
      { title: "first", text: true, value: (row) => data.labels[row.first], show: (row) => page.item(row.first) },
      { title: "then", text: true, value: (row) => data.labels[row.second], show: (row) => page.item(row.second) },
      { title: "can the data tell?", text: true, value: (row) => VERDICTS[row.verdict].word, show: (row) => verdictMark(row.verdict) },
      { title: "probability in this sample", value: (row) => row.p, show: (row) => probability(row.p) },
      { title: data.isPosterior ? "90% interval" : "the data allow", value: (row) => row.low, show: (row) => (row.low === null ? "\u2013" : range(row.low, row.high)) },
    ],
    rows,
    { caption: "Which item came first in this set", noun: "pair", page: 10 },
  );
  return [
    h("h3", {}, "Which came first, pair by pair"),
    h("p", { class: "note" }, "The range and the verdict are for all samples with both items, not only for this set."),
    made.element,
  ];
}
