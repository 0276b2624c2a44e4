// Labels in the form in which they are shown: one line, short, and in the direction of the page.

const BREAKS = /[\n\r\t\v\f\x85\u2028\u2029]/g;
// Control characters, signs that change the direction of text, lone surrogates, non-characters.
const UNFIT =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]|\p{Surrogate}/gu;

// What a spreadsheet runs as a formula, as in src/sequela/support/spreadsheets.py.
const LIVE = /^'*(?:\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])/;

/** Return a label as one line without control characters. */
export function clean(label) {
  return String(label).replace(BREAKS, " ").replace(UNFIT, "\ufffd");
}

/** Return a label of at most `room` signs: an ellipsis replaces its middle. */
export function shorten(label, room = 18) {
  const signs = [...clean(label).slice(0, 4000)];
  const cut = clean(label).length > 4000;
  if (!cut && signs.length <= room) return signs.join("");
  const last = Math.floor(((room - 1) * 2) / 5);
  const tail = [...clean(label).slice(-4 * room)].slice(-last);
  return signs.slice(0, room - 1 - last).join("") + "\u2026" + (last ? tail.join("") : "");
}

/** Shorten several labels; those that become equal are numbered. */
export function shortenAll(labels, room = 18) {
  const texts = labels.map((label) => shorten(label, room));
  const times = new Map();
  for (const text of texts) times.set(text, (times.get(text) ?? 0) + 1);
  const seen = new Map();
  return texts.map((text) => {
    if (times.get(text) === 1) return text;
    seen.set(text, (seen.get(text) ?? 0) + 1);
    return `${text} #${seen.get(text)}`;
  });
}

/** Return a label as it is searched: lower case, without accents. */
export function searchable(label) {
  return clean(label).normalize("NFKD").replace(/\p{Mn}/gu, "").toLowerCase();
}

/** Return a probability with two digits, as 0 or 1 only if it is exactly 0 or 1. */
export function probability(p) {
  if (p === null || p === undefined || Number.isNaN(p)) return "\u2013";
  if (p > 0.995 && p < 1) return ">0.99";
  if (p < 0.005 && p > 0) return "<0.01";
  return p.toFixed(2);
}

/** Return a range of probabilities. An end that only rounds to 0.50 says on which side of 0.5 it is. */
export function range(low, high, between = "to") {
  const end = (p) => (probability(p) === "0.50" && p !== 0.5 ? `${p > 0.5 ? ">" : "<"}0.50` : probability(p));
  return `${end(low)} ${between} ${end(high)}`;
}

/** Return a share as a percentage. */
export function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.1) return "<0.1%";
  return `${value < 10 && value > 0 ? value.toFixed(1) : value.toFixed(0)}%`;
}

/** Return a number as text with at most three significant digits. */
export function number(x, digits = 3) {
  if (x === null || x === undefined || Number.isNaN(x)) return "\u2013";
  if (!Number.isFinite(x)) return x > 0 ? "\u221e" : "\u2212\u221e";
  if (x === 0) return "0";
  const size = Math.abs(x);
  const text =
    size >= 1e5 || size < 1e-3 ? x.toExponential(digits - 1) : Number(x.toPrecision(digits)).toString();
  return text.replace("-", "\u2212");
}

/** Return an integer with thin spaces between groups of three digits. */
export function integer(x) {
  return String(Math.round(x)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** Return a number and its noun. */
export function counted(count, noun, plural = `${noun}s`) {
  return `${integer(count)} ${count === 1 ? noun : plural}`;
}

/** Return a log effect as a factor on the rate. */
export function factor(effect) {
  return `\u00d7\u2009${number(Math.exp(effect), 3)}`;
}

let ruler = null;

/** Return the width of a text in pixels at a font size. */
export function textWidth(text, size) {
  if (typeof document === "undefined") return estimatedWidth(text, size);
  if (!ruler) {
    ruler = document.createElement("canvas").getContext("2d");
    ruler.font = `100px ${getComputedStyle(document.body).fontFamily}`;
  }
  return (ruler.measureText(text).width * size) / 100;
}

/** Return a label shortened until it is at most `room` pixels wide. */
export function fitted(label, size, room) {
  let signs = Math.min([...clean(label).slice(0, 60)].length, 60);
  let text = shorten(label, signs);
  while (signs > 3 && textWidth(text, size) > room) {
    signs -= 1;
    text = shorten(label, signs);
  }
  return text;
}

/** Estimate the width of a text in pixels, where no browser can measure it. */
function estimatedWidth(text, size) {
  let ems = 0;
  for (const sign of text) {
    if (/[WM@%\u2026]/.test(sign) || sign.codePointAt(0) > 0x2e80) ems += 0.98;
    else if (/[A-Z0-9]/.test(sign)) ems += 0.66;
    else if (/[ijl.,:;'|!()[\] It]/.test(sign)) ems += 0.34;
    else ems += 0.57;
  }
  return ems * size;
}

/**
 * Return values as the text of a CSV file. A quote is added before a text that a spreadsheet would
 * run as a formula.
 */
export function csv(header, rows) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
    let text = String(value);
    if (LIVE.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [header, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
}
