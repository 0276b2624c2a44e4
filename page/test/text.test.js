import assert from "node:assert/strict";
import { test } from "node:test";

import { blend, diverging, sequential } from "../src/core/colours.js";
import { clean, counted, csv, fitted, integer, number, percent, probability, range, shorten, shortenAll, textWidth } from "../src/core/text.js";
import { readPayload } from "../src/data.js";

test("labels become one line without characters that change the direction of text", () => {
  assert.equal(clean("two\nlines"), "two lines");
  assert.equal(clean("a\u202eb\u0000c\u2066"), "a\ufffdb\ufffdc\ufffd");
  assert.equal(clean("x\u2028y"), "x y");
  assert.equal(clean("\ud800 half"), "\ufffd half");
  assert.equal(clean("<b>"), "<b>");
});

test("long labels keep their ends", () => {
  assert.equal(shorten("short"), "short");
  const text = shorten("abcdefghijklmnopqrstuvwxyz", 10);
  assert.equal([...text].length, 10);
  assert.ok(text.startsWith("abc") && text.endsWith("xyz") && text.includes("\u2026"));
  assert.equal([...shorten("\u{1f600}".repeat(50), 8)].length, 8);
  assert.ok(shorten("x".repeat(5000)).length < 20);
  assert.deepEqual(shortenAll(["x".repeat(40) + "1", "x".repeat(40) + "1", "y"]).map((t) => t.slice(-2)), ["#1", "#2", "y"]);
});

test("labels are shortened until they fit the given width", () => {
  const label = "a label of some length";
  assert.equal(fitted(label, 10, 1000), label);
  assert.ok(textWidth(fitted(label, 10, 60), 10) <= 60);
});

test("a probability is shown as 0 or 1 only if it is exactly 0 or 1", () => {
  assert.equal(probability(0.999), ">0.99");
  assert.equal(probability(0.001), "<0.01");
  assert.equal(probability(1), "1.00");
  assert.equal(probability(0.845), "0.84");
  assert.equal(probability(null), "\u2013");
  assert.equal(range(0.502, 0.9), ">0.50 to 0.90");
  assert.equal(range(0.3, 0.498, "and"), "0.30 and <0.50");
  assert.equal(range(0.5, 0.9), "0.50 to 0.90");
  assert.equal(percent(0.0004), "<0.1%");
  assert.equal(number(-0.25), "\u22120.25");
  assert.equal(integer(12345), "12\u202f345");
  assert.equal(counted(1, "sample"), "1 sample");
});

test("saved tables contain nothing that a spreadsheet would run", () => {
  const text = csv(["a", "b"], [["=1+1", 'say "x", y'], [0.5, null], ["@x", NaN], ["'plain", " -2"]]);
  assert.equal(text, `a,b\n'=1+1,"say ""x"", y"\n0.5,\n'@x,\n'plain,' -2\n`);
});

test("colours run from blue through the middle to orange", () => {
  const scale = diverging(false);
  assert.deepEqual(scale(0), [0xf7, 0xf7, 0xf7, 255]);
  assert.deepEqual(scale(-1).slice(0, 3), [0x12, 0x37, 0x5a]);
  assert.deepEqual(scale(1, 0.5), [0x7a, 0x2f, 0x05, 128]);
  assert.deepEqual(scale(NaN), [0, 0, 0, 0]);
  assert.deepEqual(sequential(false)(0).slice(0, 3), [0x44, 0x01, 0x54]);
  assert.deepEqual(blend(["#000000", "#0000ff"], 0.5), [0, 0, 128]);
});

function payload(more = {}) {
  return {
    format: "sequela report", version: 1, title: "x",
    items: { labels: ["a", "b", "c"], frequency: [0.5, 0.4, 0.3], expected: null },
    model: { base: [0, 0, 0], from: [0, 1], to: [1, 2], effect: [1, -2], stop_rate: 1, certainty: null },
    verdicts: { kind: "none", rows: { first: [1], second: [0], probability: [0.8] } },
    orders: { items: [0, 1, 2], probability: [200, null, 700], together: [100, 0, 500], draws: 9 },
    samples: null, ...more,
  }; // prettier-ignore
}

test("the order matrix is read from its upper triangle", () => {
  const { orders, edges, verdicts } = readPayload(payload());
  assert.equal(orders.probability(0, 1), 0.2);
  assert.equal(orders.probability(1, 0), 0.8);
  assert.ok(Number.isNaN(orders.probability(0, 2)) && Number.isNaN(orders.probability(1, 1)));
  assert.equal(orders.probability(1, 2), 0.7);
  assert.equal(orders.together(2, 1), 0.005);
  assert.equal(edges[0].effect, -2);
  assert.deepEqual([verdicts.rows[0].probability, verdicts.rows[0].low, verdicts.rows[0].verdict], [0.8, null, "unchecked"]);
});

test("data of another kind or version are refused", () => {
  assert.throws(() => readPayload(payload({ format: "other" })), /not a sequela report/);
  assert.throws(() => readPayload(payload({ version: 2 })), /have version 2; this page reads 1/);
});
