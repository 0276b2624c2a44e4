// One item: how often it occurs, which items act on it, on which items it acts, and which items come
// before and after it.

import { h, replace } from "../core/dom.js";
import { button } from "../core/figure.js";
import { factor, number, percent, probability } from "../core/text.js";
import { verdictMark } from "../core/verdict.js";
import { findPair, rangeBar } from "./verdicts.js";

const LISTED = 12;

/** Make the dialog; return the function open(item), which shows an item in it. */
export function itemDialog(page) {
  const body = h("div", {});
  const dialog = h("dialog", { class: "item-dialog", "aria-labelledby": "item-title" }, body);
  document.body.append(dialog);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  return (item) => {
    fill(body, dialog, page, item);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  };
}

function fill(body, dialog, page, item) {
  const { data } = page;
  const facts = [];
  if (data.payload.items.frequency) facts.push(`in ${percent(data.payload.items.frequency[item])} of the samples`);
  facts.push(`base rate ${number(Math.exp(data.payload.model.base[item]), 3)} per unit of time`);
  const into = data.edges.filter((edge) => edge.to === item);
  const out = data.edges.filter((edge) => edge.from === item);
  const pairs = [];
  for (let other = 0; other < data.n; other += 1) {
    if (other === item) continue;
    const row = findPair(data, item, other);
    if (row.probability !== null && (row.verdict !== "unchecked" || row.observed > 0.002)) pairs.push(row);
  }
  pairs.sort((a, b) => Math.abs(b.probability - 0.5) - Math.abs(a.probability - 0.5));
  replace(
    body,
    h(
      "div",
      { class: "dialog-head" },
      h("h2", { id: "item-title" }, h("bdi", {}, data.labels[item])),
      button("Close", "Close", () => dialog.close()),
    ),
    h("p", {}, facts.join("; "), "."),
    h("div", { class: "columns" }, effects("What acts on it", into, (e) => e.from, page), effects("What it acts on", out, (e) => e.to, page)),
    h("h3", {}, "Before or after?"),
    pairs.length ? h("p", { class: "note" }, "The word at the end of a line says whether the data can tell the order.") : null,
    pairs.length ? orders(pairs.slice(0, LISTED), page) : h("p", {}, "No other item occurs often enough together with this item."),
    pairs.length > LISTED ? h("p", { class: "note" }, `These are the ${LISTED} orders whose probabilities differ most from 0.5, of ${pairs.length} orders.`) : null,
  );
}

function effects(title, edges, other, page) {
  return h(
    "section",
    {},
    h("h3", {}, title),
    edges.length
      ? h("ul", { class: "plain" }, edges.slice(0, LISTED).map((edge) =>
          h(
            "li",
            {},
            page.item(other(edge)),
            " ",
            h("span", { class: edge.effect > 0 ? "promotes" : "inhibits" }, factor(edge.effect)),
            edge.low === null ? null : h("span", { class: "note" }, ` (${factor(edge.low)} to ${factor(edge.high)})`),
          ),
        ))
      : h("p", { class: "note" }, "no item in this model"),
    edges.length > LISTED ? h("p", { class: "note" }, `and ${edges.length - LISTED} weaker effects`) : null,
  );
}

function orders(pairs, page) {
  return h(
    "ul",
    { class: "plain" },
    pairs.map((row) => {
      const before = row.probability >= 0.5;
      return h(
        "li",
        {},
        before ? "before " : "after ",
        page.item(row.second),
        ` with probability ${probability(before ? row.probability : 1 - row.probability)} `,
        h("span", { class: "range-cell" }, rangeBar(row, 80), verdictMark(row.verdict)),
      );
    }),
  );
}
