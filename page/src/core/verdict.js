// The verdicts on orders: the sign, the words and the number of each.

import { h } from "./dom.js";

// In the order in which the page lists them. `sign` has the same meaning as the colour, `word` stands
// in tables, and `name` in lists of choices.
export const VERDICTS = {
  yes: { sign: "\u2713", word: "yes", name: "the data can tell" },
  suggests: { sign: "~", word: "perhaps", name: "the data suggest it" },
  no: { sign: "\u2717", word: "no", name: "the data cannot tell" },
  depends: { sign: "\u21c4", word: "not sure", name: "not sure: opposite if items influence the observation" },
  untrusted: { sign: "!", word: "not trusted", name: "not trusted: the model does not fit" },
  unchecked: { sign: "?", word: "not checked", name: "not checked" },
};

/** Return the verdict as a coloured word, after a sign that has the same meaning without colour. */
export function verdictMark(verdict) {
  const { sign, word } = VERDICTS[verdict];
  return h("span", { class: `verdict ${verdict}` }, h("span", { "aria-hidden": "true" }, sign), " ", word);
}

/** Return the number of rows with each verdict. */
export function countVerdicts(rows) {
  const counts = Object.fromEntries(Object.keys(VERDICTS).map((verdict) => [verdict, 0]));
  for (const row of rows) counts[row.verdict] += 1;
  return counts;
}

/** Return the names of the verdicts that the rows have. The name of "untrusted" depends on the kind. */
export function verdictChoices(rows, kind) {
  const there = new Set(rows.map((row) => row.verdict));
  const name = (verdict) => (verdict === "untrusted" && kind === "posterior" ? "not trusted" : VERDICTS[verdict].name);
  const choices = Object.keys(VERDICTS).filter((verdict) => there.has(verdict)).map((verdict) => [verdict, name(verdict)]);
  return there.has("unchecked") && there.size > 1 ? [["checked", "checked"], ...choices] : choices;
}

/** Return whether the verdict of a row is the one that was chosen: "all", "checked" or a verdict. */
export function hasVerdict(row, chosen) {
  return chosen === "all" || row.verdict === chosen || (chosen === "checked" && row.verdict !== "unchecked");
}
