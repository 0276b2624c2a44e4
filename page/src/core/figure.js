// The frame of every figure: title, explanation, controls and downloads.

import { h, newId } from "./dom.js";
import { savePng, saveSvg } from "./download.js";

/**
 * Make a figure. `options.controls` stand above the drawing, `options.note` below it; `name` is the
 * name of the files. Returns { element, body, note, status }; draw an <svg> into the body.
 */
export function figure(name, title, options = {}) {
  const id = newId("figure");
  const body = h("div", { class: "drawing" });
  const note = h("p", { class: "note" }, options.note ?? "");
  const status = h("p", { class: "readout", "aria-live": "polite" }, options.hint ?? "");
  const drawn = () => body.querySelector("svg");
  const buttons = h(
    "div",
    { class: "downloads no-print" },
    button("SVG", "Download this figure as SVG", () => drawn() && saveSvg(name, drawn)),
    button("PNG", "Download this figure as PNG", () => drawn() && savePng(name, drawn)),
  );
  const element = h(
    "figure",
    { class: "figure", "aria-labelledby": id, "data-figure": name },
    h("div", { class: "figure-head" }, h("h3", { id }, title), buttons),
    options.controls?.length ? h("div", { class: "controls no-print" }, options.controls) : null,
    options.hint === undefined ? null : status,
    body,
    h("figcaption", {}, note),
  );
  return { element, body, note, status };
}

/** Make a button. Screen readers read `what`, which is a longer description than its text. */
export function button(text, what, click, more = {}) {
  return h("button", { type: "button", "aria-label": what, ...more, on: { click } }, text);
}

/** Make a labelled range input that calls `change` with its number. */
export function slider(text, { min, max, step = 1, value, show = String }, change) {
  const id = newId("slider");
  const output = h("output", { for: id }, show(value));
  const input = h("input", { id, type: "range", min, max, step, value });
  input.addEventListener("input", () => {
    output.textContent = show(Number(input.value));
    change(Number(input.value));
  });
  return h("span", { class: "control" }, h("label", { for: id }, text), input, output);
}

/** Make a labelled choice between a few values: [[value, text], ...]. */
export function choice(text, values, value, change) {
  const id = newId("choice");
  const select = h("select", { id });
  for (const [key, name] of values) {
    select.append(h("option", { value: key, selected: key === value }, name));
  }
  select.addEventListener("change", () => change(select.value));
  return h("span", { class: "control" }, h("label", { for: id }, text), select);
}

/** Make a labelled tick box. */
export function tick(text, checked, change) {
  const input = h("input", { type: "checkbox", checked });
  input.addEventListener("change", () => change(input.checked));
  return h("label", { class: "control" }, input, " ", text);
}
