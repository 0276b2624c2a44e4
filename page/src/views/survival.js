// The survival of early and late samples as Kaplan-Meier curves, as in the figure of plot_survival.

import { scaleLinear } from "d3-scale";

import { axisBelow, axisLeft, drawing } from "../core/axes.js";
import { palette } from "../core/colours.js";
import { drawByWidth, h, replace, s } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { counted, integer, number, percent, textWidth } from "../core/text.js";

const DASHES = ["", "6 3"];
const ENDPOINTS = { OS: "overall survival", DFS: "disease-free survival", PFS: "progression-free survival", DSS: "disease-specific survival" };

/** Return the corners of a step function as a path. */
export function stepPath(times, values, x, y) {
  return times
    .map((t, k) => (k ? `H${x(t).toFixed(1)}V${y(values[k]).toFixed(1)}` : `M${x(t).toFixed(1)},${y(values[k]).toFixed(1)}`))
    .join("");
}

/** Return the area between two step functions as a path. */
function bandPath({ time, low, high }, x, y) {
  const back = [];
  for (let k = time.length - 1; k > 0; k -= 1) back.push(`V${y(low[k]).toFixed(1)}H${x(time[k]).toFixed(1)}`);
  return `${stepPath(time, high, x, y)}${back.join("")}V${y(low[0]).toFixed(1)}Z`;
}

/** Return the value of a step function just after time t. */
function valueAt({ time, survival }, t) {
  let at = 0;
  while (at + 1 < time.length && time[at + 1] <= t) at += 1;
  return survival[at];
}

/** Return the number of samples that are still under observation at time t. */
export function atRisk({ time, at_risk: risk }, t) {
  const next = time.findIndex((x) => x >= t);
  return next < 0 ? 0 : risk[next];
}

const said = (p) => (p === null ? "" : p < 1e-4 ? "p < 0.0001" : `p = ${number(p, 2)}`);

export function survivalPart(page) {
  const found = page.data.payload.survival;
  const what = ENDPOINTS[found.endpoint] ?? "survival";
  const made = figure("survival", `Survival of early and late samples (${what})`, {
    note:
      "Kaplan-Meier curves with 95% bands. For a patient who did not have the event, a tick marks the time at which the patient was last seen. " +
      "The samples are split into an earlier and a later half by their mean pseudo-time. The numbers below the axis are the numbers of samples that are still under observation.",
  });
  const draw = (width) => {
    const last = Math.max(...found.groups.map(({ time }) => time[time.length - 1]), 1e-9);
    const height = 330;
    const bottom = height - 84;
    const x = scaleLinear([0, last], [64, width - 14]);
    const y = scaleLinear([0, 1], [bottom, 26]);
    const colours = palette().series;
    const ticks = x.ticks(Math.max(3, Math.min(8, width / 90)));
    const marks = found.groups.map((group, k) => {
      const style = { stroke: colours[k], fill: "none" };
      return s(
        "g",
        {},
        s("path", { d: bandPath(group, x, y), style: { fill: colours[k] }, opacity: 0.15 }),
        s("path", { d: stepPath(group.time, group.survival, x, y), style, "stroke-width": 2, "stroke-dasharray": DASHES[k] || null }),
        group.lost.map((t) => {
          const at = y(valueAt(group, t));
          return s("line", { x1: x(t), x2: x(t), y1: at - 4, y2: at + 4, style, opacity: 0.7 });
        }),
        s("text", { x: 4, y: bottom + 52 + 16 * k, "text-anchor": "start", class: "tick", style: { fill: colours[k] } }, group.name),
        ticks.map((t) => s("text", { x: x(t), y: bottom + 52 + 16 * k, "text-anchor": "middle", class: "tick" }, integer(atRisk(group, t)))),
      );
    });
    const texts = found.groups.map((group) => `${group.name} (n = ${group.samples}, ${counted(group.events, "event")})`);
    const left = width - 18 - Math.max(...texts.map((text) => textWidth(text, 12)));
    const legend = found.groups.map((group, k) =>
      s(
        "g",
        {},
        s("line", { x1: left - 30, x2: left - 6, y1: 34 + 17 * k, y2: 34 + 17 * k, style: { stroke: colours[k] }, "stroke-width": 2, "stroke-dasharray": DASHES[k] || null }),
        s("text", { x: left, y: 38 + 17 * k, class: "label" }, texts[k]),
      ),
    );
    replace(
      made.body,
      drawing(
        width, height, marks, legend,
        axisLeft(y, 64, { title: "survival probability", ticks: 5 }),
        axisBelow(x, bottom, { title: found.unit ? `time (${found.unit})` : "time", ticks: Math.max(3, Math.min(8, width / 90)) }),
        found.p === null ? null : s("text", { x: width - 14, y: 14, class: "tick", "text-anchor": "end" }, `log-rank test: ${said(found.p)}`),
      ), // prettier-ignore
    );
  };
  let width = 800;
  drawByWidth(made.body, (w) => {
    width = w;
    draw(w);
  });
  page.onTheme(() => draw(width));
  return h("div", {}, h("p", {}, summary(found)), made.element);
}

/** Say in words what the curves show. */
function summary(found) {
  const [early, late] = found.groups;
  const middle = (group) => {
    const at = group.survival.findIndex((share) => share <= 0.5);
    return at < 0 ? "is not reached" : `is ${number(group.time[at], 3)}${found.unit ? ` ${found.unit}` : ""}`;
  };
  const p = found.p;
  const verdict =
    p === null
      ? ""
      : p < 0.05
        ? ` The difference is larger than expected by chance (log-rank test: ${said(p)}).`
        : ` The data do not show a difference (log-rank test: ${said(p)}).`;
  const left = found.left_out ? ` ${counted(found.left_out, "sample")} without survival times ${found.left_out === 1 ? "is" : "are"} left out (${percent(found.left_out / (found.left_out + early.samples + late.samples))}).` : "";
  return `The median survival time of early samples ${middle(early)}, and that of late samples ${middle(late)}.${verdict}${left}`;
}
