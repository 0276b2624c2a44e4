import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { countVerdicts, hasVerdict, VERDICTS, verdictChoices } from "../src/core/verdict.js";
import { summary } from "../src/views/verdicts.js";

const style = readFileSync(new URL("../src/style.css", import.meta.url), "utf8");
const rowsOf = (...verdicts) => verdicts.map((verdict) => ({ verdict }));

test("every verdict has words and a sign of its own, and a colour", () => {
  for (const name of ["sign", "word", "name"]) {
    const values = Object.values(VERDICTS).map((verdict) => verdict[name]);
    assert.ok(values.every(Boolean));
    assert.equal(new Set(values).size, values.length);
  }
  for (const verdict of Object.keys(VERDICTS)) assert.match(style, new RegExp(`\\.verdict\\.${verdict}\\b[^}]*color:`));
});

test("verdicts are counted and can be chosen", () => {
  const rows = rowsOf("no", "depends", "unchecked", "depends");
  assert.deepEqual(countVerdicts(rows), { yes: 0, suggests: 0, no: 1, depends: 2, untrusted: 0, unchecked: 1 });
  assert.deepEqual(verdictChoices(rows, "range"), [
    ["checked", "checked"], ["no", "the data cannot tell"],
    ["depends", "not sure: opposite if items influence the observation"], ["unchecked", "not checked"],
  ]); // prettier-ignore
  assert.deepEqual(verdictChoices(rowsOf("untrusted"), "posterior"), [["untrusted", "not trusted"]]);
  const kept = (chosen) => rows.filter((row) => hasVerdict(row, chosen)).length;
  assert.deepEqual(["all", "checked", "depends", "yes"].map(kept), [4, 3, 2, 0]);
});

test("the summary counts each verdict once", () => {
  const says = (kind, ...verdicts) => summary({ kind, rows: rowsOf(...verdicts) }).join(" ");
  const told = says("range", "yes", "no", "depends", "depends", "unchecked");
  assert.ok(told.startsWith("Of 4 orders that were checked, the data can tell 1 and cannot tell 1. The verdict of 2 orders is \u201cnot sure\u201d"));
  assert.match(told, /opposite in a model in which items influence the observation/);
  assert.match(told, /The other 1 order of the table was not checked/);
  assert.doesNotMatch(says("range", "yes"), /not sure|not trusted/);
  assert.match(says("range", "untrusted"), /For 1 order, the evidence is clear, but .* this order is not trusted\./);
  assert.equal(says("posterior", "yes", "suggests"), "Of 2 orders, the data can tell 1, suggest 1, and cannot tell 0.");
});
