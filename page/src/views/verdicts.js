// (a) Can the data tell? The orders and their certainty.

import { h, newId, prose, replace, s } from "../core/dom.js";
import { choice } from "../core/figure.js";
import { table } from "../core/table.js";
import { counted, integer, percent, probability, range } from "../core/text.js";
import { countVerdicts, hasVerdict, VERDICTS, verdictChoices, verdictMark } from "../core/verdict.js";

const CLEAR = 2; // nats

const MEANING = {
  none:
    "Certainty was not computed. The probabilities below are those of one model. Other models may " +
    "explain the data equally well with another order.",
  evidence:
    "The evidence says how much better this order fits the data than the opposite order, in nats. " +
    "If it is below about 2 nats, the data cannot tell the order, even if the model seems certain.",
  range:
    "A model can seem certain of an order that the data do not determine. So the fit also looked for " +
    "other models that explain the data almost equally well (within 2 nats of the best one). " +
    "\u201cThe data allow\u201d is the range of the probability over all these models. If it includes 0.5, the data " +
    "cannot tell which item came first.",
  posterior:
    "Many models explain the data. The probability is the average over all these models, weighted by how plausible " +
    "each model is. The interval contains the probabilities of 90% of the models. The data can tell an order if the probability " +
    "that the item usually comes first is at least 0.95. If it is at least 0.8, the data suggest the order.",
};
const PLAIN = /^[\w().:+-]+$/;
const EVIDENCE = {
  posterior: "Evidence: the logarithm of the odds that the first item usually comes first. Evidence of 3 corresponds to odds of 20 to 1.",
  other: "Evidence: how much better this order fits the data than the opposite order, in nats. If it is below 0, the opposite order fits better. If it is above 2, the evidence is clear.",
};

/** Draw a probability and its range on a line from 0 to 1. */
export function rangeBar(row, width = 90) {
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

/** Return evidence with one digit; a value that rounds to zero has no sign. */
function nats(x) {
  if (x === null) return "\u2013";
  const text = x.toFixed(1);
  return text === "-0.0" ? "0.0" : text.replace("-", "\u2212");
}

/** Return the row of the pair a before b, from the verdicts or else from the order matrix. */
export function findPair(data, a, b) {
  for (const row of data.verdicts.rows) {
    if (row.first === a && row.second === b) return row;
    if (row.first === b && row.second === a) return turned(row);
  }
  const p = data.orders.probability(a, b);
  return {
    first: a, second: b, probability: Number.isNaN(p) ? null : p, low: null, high: null,
    evidence: null, verdict: "unchecked", baseline: null, observed: data.orders.together(a, b),
    usuallyFirst: null, samples: null, effective: null, rHat: null,
  }; // prettier-ignore
}

function turned(row) {
  const flip = (p) => (p === null ? null : 1 - p);
  return {
    ...row, first: row.second, second: row.first, probability: flip(row.probability),
    low: flip(row.high), high: flip(row.low), usuallyFirst: flip(row.usuallyFirst ?? null),
    evidence: row.evidence === null ? null : -row.evidence,
  }; // prettier-ignore
}

/** Return the answer to "which came first?" in words. */
function answer(data, a, b, name) {
  if (a === b) return ["Choose two different items."];
  let row = findPair(data, a, b);
  if (row.probability === null) {
    return ["The report has no order for ", name(a), " and ", name(b), ": they almost never occur together."];
  }
  if (row.probability < 0.5) row = turned(row);
  const [first, second] = [name(row.first), name(row.second)];
  const verdict = {
    yes: ["Yes, the data can tell: ", first, " came before ", second, "."],
    suggests: ["The data suggest that ", first, " came before ", second, ", but this is not certain."],
    no: ["No, the data cannot tell which of the two came first."],
    depends: ["Not sure: ", first, " came before ", second, " in this model, but the order is opposite in a model in which items influence the observation."],
    untrusted:
      data.verdicts.kind === "posterior"
        ? ["Not sure yet: in most of the drawn models, ", first, " came before ", second, ". But the chains have not converged for this pair, or the model does not describe the data."]
        : ["Not trusted: the model does not describe the data, so its orders can be wrong."],
    unchecked: ["Not known: whether the data can tell was not checked for this pair."],
  }[row.verdict];
  const parts = [h("strong", { class: `verdict ${row.verdict}` }, verdict), " "];
  if (row.verdict === "depends") parts.push("The data do not exclude such a model. ");
  const average = data.verdicts.kind === "posterior";
  parts.push(
    average ? "Averaged over all models that explain the data, " : `According to the model${row.verdict === "depends" ? " without this influence" : ""}, `,
    name(row.first), " came first with probability ", h("strong", {}, probability(row.probability)),
    row.low === null ? ". " : average ? ". In 90% of the models, this probability is between " : `. In other models${row.verdict === "depends" ? " of this kind" : ""} that explain the data almost as well, this probability is `,
    row.low === null ? "" : [h("strong", {}, range(row.low, row.high, average ? "and" : "to")), ". "],
  ); // prettier-ignore
  if (row.usuallyFirst !== null) parts.push("The probability that it usually comes first is ", h("strong", {}, probability(row.usuallyFirst)), ". ");
  if (row.evidence !== null && !average) {
    parts.push("The evidence for this order is ", h("strong", {}, nats(row.evidence)), ` nats${weight(row.evidence)}. `);
  }
  if (row.baseline !== null) {
    const agrees = row.baseline === row.first;
    parts.push(
      "A simple check without a model: samples with ", name(row.baseline),
      " have fewer items on average, so this item may have come first. This check ", agrees ? "agrees with the model." : "suggests the opposite order.",
    ); // prettier-ignore
  }
  if (row.verdict === "depends") parts.push(" The file ", h("code", {}, "orders_with_effects.csv"), " in the folder of the run has the probability of each order in the model with this influence.");
  if (row.verdict === "unchecked") parts.push(advice(data, row));
  return parts;
}

/** Return what evidence in nats means, in words. */
function weight(evidence) {
  if (Math.abs(evidence) < 0.5) return ", so both orders fit about equally well";
  return evidence < 0 ? ", so the opposite order fits better if the penalty of the fit is not counted" : ` (above ${CLEAR} nats, the evidence is clear)`;
}

/** Return the commands that check a pair, if the report has them. */
function advice(data, row) {
  const { command, kind } = data.verdicts;
  if (!command || kind === "none") return ""; // if no pair was checked, the page shows the commands elsewhere
  const [check, again] = command.split("\n");
  const labels = [data.labels[row.first], data.labels[row.second]];
  // Other labels might need quotes, which depend on the shell.
  const pair = labels.every((label) => PLAIN.test(label)) ? ` --pair "${labels.join(",")}"` : "";
  return [" To check it, run ", h("code", {}, check + pair), " and then ", h("code", {}, again), "."];
}

export const verdicts = {
  id: "verdicts",
  title: "Can the data tell?",
  short: "Can the data tell?",

  render(root, page) {
    const { data } = page;
    const known = data.verdicts;
    root.append(askBox(page));
    root.append(h("p", { class: "lead" }, MEANING[known.kind] ?? MEANING.none));
    for (const note of known.notes ?? []) root.append(h("p", { class: "note" }, prose(note)));
    if (known.kind === "none") {
      root.append(
        h(
          "div",
          { class: "callout", role: "note" },
          h("p", {}, h("strong", {}, "To find out whether the data can tell"), ", run these commands in the directory that contains the folder of the run and the data. Then open the report again:"),
          h("pre", {}, h("code", {}, known.command)),
        ),
      );
    }
    if (known.kind !== "none") root.append(...summary(known).map((text) => h("p", {}, prose(text))));
    if (!known.rows.length) {
      root.append(h("p", {}, "There is no pair of items to compare."));
      return;
    }
    root.append(orderTable(page));
  },
};

/** Return paragraphs: how many orders were checked, how many of them the data can tell, and what is left. */
export function summary(known) {
  const { yes, suggests, no, depends, untrusted, unchecked } = countVerdicts(known.rows);
  const parts = [`the data can tell ${yes}`, suggests || known.kind === "posterior" ? `suggest ${suggests}` : null, `and cannot tell ${no}`].filter(Boolean);
  const unsure = depends ? ` The verdict of ${counted(depends, "order")} is \u201cnot sure\u201d: the range is clear, but the order is opposite in a model in which items influence the observation, and the data do not exclude such a model.` : "";
  const misfit = untrusted ? ` For ${counted(untrusted, "order")}, the evidence is clear, but the model does not describe the data, so ${untrusted === 1 ? "this order is" : "these orders are"} not trusted.` : "";
  const told = `Of ${counted(known.rows.length - unchecked, "order")}${known.kind === "posterior" ? "" : " that were checked"}, ${parts.join(parts.length > 2 ? ", " : " ")}.${unsure}${misfit}`;
  if (!unchecked) return [told];
  const left = `The fit checks the pairs with the strongest interactions first, and stops at a limit of its computing time. The other ${counted(unchecked, "order")} of the table ${unchecked === 1 ? "was" : "were"} not checked, and other models may give the opposite order. To check a pair, choose it above: the answer shows the commands. The command \`sequela posterior\` computes the certainty of all pairs.`;
  return [told, left];
}

/** Make the question with two choices, and its answer. */
function askBox(page) {
  const { data } = page;
  if (data.n < 2) return "";
  const { rows } = data.verdicts;
  const first = rows.find((row) => row.verdict === "yes") ?? rows[0] ?? { first: 0, second: 1 };
  // Sorted by name, because readers look for an item by its name.
  const order = [...page.itemsByFrequency].sort((a, b) => data.labels[a].localeCompare(data.labels[b], "en"));
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
    { title: "can the data tell?", text: true, value: (row) => VERDICTS[row.verdict].word, show: (row) => verdictMark(row.verdict) },
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
          show: (row) => (row.low === null ? "\u2013" : range(row.low, row.high)),
        }
      : null,
    has("usuallyFirst") ? { title: "usually first", value: (row) => row.usuallyFirst, show: (row) => probability(row.usuallyFirst) } : null,
    has("evidence")
      ? { title: known.kind === "posterior" ? "evidence (log odds)" : "evidence (nats)", value: (row) => row.evidence, show: (row) => nats(row.evidence) }
      : null,
    has("baseline")
      ? {
          title: "simple check", text: true,
          value: (row) => (row.baseline === null ? "" : row.baseline === row.first ? "agrees" : "disagrees"),
        } // prettier-ignore
      : null,
    has("samples")
      ? { title: "samples with both", value: (row) => row.samples, show: (row) => (row.samples === null ? "\u2013" : integer(row.samples)) }
      : has("observed")
        ? { title: "share with both", value: (row) => row.observed, show: (row) => (row.observed === null ? "\u2013" : percent(row.observed)) }
        : null,
    has("effective") ? { title: "effective draws", value: (row) => row.effective, show: (row) => integer(row.effective) } : null,
    has("rHat") ? { title: "R\u2011hat", csv: [["R-hat", (row) => row.rHat]], value: (row) => row.rHat, show: (row) => h("span", { class: row.rHat > 1.01 ? "verdict no" : "" }, row.rHat.toFixed(3)) } : null,
  ].filter(Boolean);
  const id = newId("only");
  const select = h("select", { id }, h("option", { value: -1 }, "all items"), page.itemsByFrequency.map((i) => h("option", { value: i }, page.option(i))));
  const state = { verdict: "all" };
  const choices = verdictChoices(known.rows, known.kind);
  const which =
    choices.length > 1
      ? choice("show", [["all", "all orders"], ...choices], "all", (x) => {
          state.verdict = x;
          update();
        })
      : null;
  const made = table("orders", columns, known.rows, {
    caption: "Orders of pairs of items, with their certainty",
    noun: "order",
    page: 12,
    controls: [h("span", { class: "control" }, h("label", { for: id }, "with"), select), which],
    rowClass: (row) => `is-${row.verdict}`,
    divider: (row, before) =>
      row.verdict === "unchecked" && before && before.verdict !== "unchecked" ? "Not checked: these are guesses of one model, and other models may give the opposite order" : null,
  });
  const update = () => {
    const item = Number(select.value);
    made.filter((row) => hasVerdict(row, state.verdict) && (item < 0 || row.first === item || row.second === item));
  };
  select.addEventListener("change", update);
  const notes = [];
  if (has("evidence")) notes.push(EVIDENCE[known.kind] ?? EVIDENCE.other);
  if (has("rHat")) notes.push("If R-hat is above 1.01, or if there are few effective draws, the chains do not agree about this pair yet. Then continue the run, to draw more models.");
  if (has("baseline")) {
    notes.push(
      "Simple check: samples with the earlier item should have fewer items on average. This check ignores " +
        "all interactions, so it alone is not evidence for an order.",
    );
  }
  return h("div", {}, made.element, notes.map((text) => h("p", { class: "note" }, text)));
}
