// (a) Can the data tell? The orders, each with what is known about its certainty.

import { h, newId, replace, s } from "../core/dom.js";
import { table } from "../core/table.js";
import { counted, percent, probability } from "../core/text.js";

const SAY = { yes: "yes", no: "no", unchecked: "not checked" };
const MEANING = {
  none:
    "Certainty was not computed. The probabilities below are those of one model; other models may " +
    "explain the data equally well with another order.",
  evidence:
    "The evidence says how much better the data go with this order than with its reverse, in nats. " +
    "Below about 2 the data cannot tell, however certain the model seems.",
  range:
    "The range covers all models that explain the data almost as well as the best one (within 2 " +
    "nats). If it includes 0.5, the data cannot tell.",
  posterior:
    "The probability is an average over all models that explain the data, and the range holds 90% " +
    "of them. If it includes 0.5, the data cannot tell.",
};

/** Draw a probability and its range on a line from 0 to 1. */
export function rangeBar(row, width = 110) {
  const x = (p) => 5 + p * (width - 10);
  const known = row.low !== null && row.high !== null;
  return s(
    "svg",
    { class: "range", width, height: 16, viewBox: `0 0 ${width} 16`, "aria-hidden": "true" },
    s("line", { x1: x(0), x2: x(1), y1: 8, y2: 8, class: "axis" }),
    s("line", { x1: x(0.5), x2: x(0.5), y1: 2, y2: 14, class: "axis" }),
    known ? s("line", { x1: x(row.low), x2: x(row.high), y1: 8, y2: 8, class: "band" }) : null,
    row.probability === null
      ? null
      : s("circle", { cx: x(row.probability), cy: 8, r: 4, class: known ? "dot" : "dot open" }),
  );
}

/** Return evidence with one digit; what rounds to zero has no sign. */
function nats(x) {
  if (x === null) return "\u2013";
  const text = x.toFixed(1);
  return text === "-0.0" ? "0.0" : text.replace("-", "\u2212");
}

/** Return the verdict as a coloured word; a sign says the same without colour. */
function verdictMark(verdict) {
  const sign = { yes: "\u2713", no: "\u2717", unchecked: "?" }[verdict];
  return h("span", { class: `verdict ${verdict}` }, h("span", { "aria-hidden": "true" }, sign), " ", SAY[verdict]);
}

/** Return the row of a pair, turned to a before b, from the verdicts or the order matrix. */
export function findPair(data, a, b) {
  for (const row of data.verdicts.rows) {
    if (row.first === a && row.second === b) return row;
    if (row.first === b && row.second === a) return turned(row);
  }
  const p = data.orders.probability(a, b);
  return {
    first: a, second: b, probability: Number.isNaN(p) ? null : p, low: null, high: null,
    evidence: null, verdict: "unchecked", baseline: null, observed: data.orders.together(a, b),
  }; // prettier-ignore
}

function turned(row) {
  const flip = (p) => (p === null ? null : 1 - p);
  return {
    ...row, first: row.second, second: row.first, probability: flip(row.probability),
    low: flip(row.high), high: flip(row.low),
  }; // prettier-ignore
}

/** Return the answer to "which came first?" in words. */
function answer(data, a, b, name) {
  if (a === b) return ["Choose two different items."];
  let row = findPair(data, a, b);
  if (row.probability === null) {
    return ["The report has no order for ", name(a), " and ", name(b), ": they were hardly ever drawn together."];
  }
  if (row.probability < 0.5) row = turned(row);
  const parts = [name(row.first), " came first with probability ", h("strong", {}, probability(row.probability))];
  parts.push(data.verdicts.kind === "posterior" ? ", averaged over all models that explain the data. " : ", says the model. ");
  if (row.low !== null) {
    parts.push("The data allow ", h("strong", {}, `${probability(row.low)} to ${probability(row.high)}`), ". ");
  }
  if (row.evidence !== null) parts.push("The evidence for this order is ", h("strong", {}, `${nats(row.evidence)} nats`), ". ");
  const verdict = {
    yes: "The data can tell: this order is supported.",
    no: "The data cannot tell which of the two came first.",
    unchecked: "Whether the data can tell was not checked for this pair.",
  }[row.verdict];
  parts.push(h("strong", { class: `verdict ${row.verdict}` }, verdict));
  if (row.baseline !== null) {
    const agrees = row.baseline === row.first;
    parts.push(
      " As a plain check: samples with ", name(row.baseline),
      " have fewer items on average, which ", agrees ? "agrees." : "points the other way.",
    ); // prettier-ignore
  }
  return parts;
}

export const verdicts = {
  id: "verdicts",
  title: "Can the data tell?",
  short: "Can the data tell?",

  render(root, page) {
    const { data } = page;
    const known = data.verdicts;
    root.append(h("p", { class: "lead" }, MEANING[known.kind] ?? MEANING.none));
    for (const note of known.notes ?? []) root.append(h("p", { class: "note" }, note));
    if (known.kind === "none") {
      root.append(
        h(
          "div",
          { class: "callout", role: "note" },
          h("p", {}, h("strong", {}, "To find out whether the data can tell"), ", run these commands (where the folder and the data are) and open the report again:"),
          h("pre", {}, h("code", {}, known.command)),
        ),
      );
    }
    if (known.kind !== "none") root.append(h("p", {}, summary(known.rows)));
    root.append(askBox(page));
    if (!known.rows.length) {
      root.append(h("p", {}, "There is no pair of items to compare."));
      return;
    }
    root.append(orderTable(page));
  },
};

/** Return how many orders were checked, and how many of them the data can tell. */
function summary(rows) {
  const yes = rows.filter((row) => row.verdict === "yes").length;
  const no = rows.filter((row) => row.verdict === "no").length;
  return `Of ${counted(rows.length, "order")} listed here, ${counted(yes + no, "was", "were")} checked: the data can tell ${yes}, and cannot tell ${no}.`;
}

/** Make the question with two choices, and its answer. */
function askBox(page) {
  const { data } = page;
  if (data.n < 2) return null;
  const first = data.verdicts.rows[0] ?? { first: 0, second: 1 };
  const order = page.itemsByFrequency;
  const out = h("p", { class: "answer", "aria-live": "polite" });
  const make = (text, chosen) => {
    const id = newId("ask");
    const select = h("select", { id }, order.map((i) => h("option", { value: i, selected: i === chosen }, page.option(i))));
    return [select, h("span", { class: "control" }, h("label", { for: id }, text), select)];
  };
  const [one, oneBox] = make("Which came first,", first.first);
  const [two, twoBox] = make("or", first.second);
  const say = () => replace(out, answer(data, Number(one.value), Number(two.value), page.name));
  one.addEventListener("change", say);
  two.addEventListener("change", say);
  say();
  return h("div", { class: "ask", id: "ask" }, h("div", { class: "ask-row" }, oneBox, twoBox, h("span", {}, "?")), out);
}

function orderTable(page) {
  const { data } = page;
  const known = data.verdicts;
  const has = (name) => known.rows.some((row) => row[name] !== null);
  const columns = [
    { title: "first", text: true, value: (row) => data.labels[row.first], show: (row) => page.item(row.first) },
    { title: "then", text: true, value: (row) => data.labels[row.second], show: (row) => page.item(row.second) },
    {
      title: "probability",
      value: (row) => row.probability,
      show: (row) => h("span", { class: "range-cell" }, rangeBar(row), h("span", {}, probability(row.probability))),
    },
    has("low")
      ? {
          title: known.kind === "posterior" ? "90% interval" : "the data allow",
          value: (row) => (row.low === null ? null : row.high - row.low),
          csv: [["low", (row) => row.low], ["high", (row) => row.high]],
          show: (row) => (row.low === null ? "\u2013" : `${probability(row.low)} to ${probability(row.high)}`),
        }
      : null,
    { title: "can the data tell?", text: true, value: (row) => SAY[row.verdict], show: (row) => verdictMark(row.verdict) },
    has("evidence") ? { title: "evidence (nats)", value: (row) => row.evidence, show: (row) => nats(row.evidence) } : null,
    has("baseline")
      ? {
          title: "plain check", text: true,
          value: (row) => (row.baseline === null ? "" : row.baseline === row.first ? "agrees" : "opposite"),
        } // prettier-ignore
      : null,
    has("observed") ? { title: "seen together", value: (row) => row.observed, show: (row) => percent(row.observed) } : null,
  ].filter(Boolean);
  const id = newId("only");
  const select = h("select", { id }, h("option", { value: -1 }, "all items"), page.itemsByFrequency.map((i) => h("option", { value: i }, page.option(i))));
  const made = table("orders", columns, known.rows, {
    caption: "Orders of pairs of items, with their certainty",
    noun: "order",
    page: 12,
    controls: h("span", { class: "control" }, h("label", { for: id }, "with"), select),
    rowClass: (row) => `is-${row.verdict}`,
  });
  select.addEventListener("change", () => {
    const item = Number(select.value);
    made.filter(item < 0 ? null : (row) => row.first === item || row.second === item);
  });
  const notes = [];
  if (has("baseline")) {
    notes.push(
      "Plain check: samples with the earlier item should have fewer items on average. It ignores " +
        "all interactions, so it is no evidence by itself.",
    );
  }
  return h("div", {}, made.element, notes.map((text) => h("p", { class: "note" }, text)));
}
