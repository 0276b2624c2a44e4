// (h) How the report was made, how to repeat it, and what to cite.

import { h } from "../core/dom.js";
import { button } from "../core/figure.js";
import { number } from "../core/text.js";

export const made = {
  id: "made",
  title: "How it was made",
  short: "How it was made",

  render(root, page) {
    const { made: about } = page.data.payload;
    if (!about) {
      root.append(h("p", {}, "The report was made from a model, and not from the folder of a run. So it cannot say how the model was learned."));
      return;
    }
    if (about.command) root.append(h("h3", {}, "To repeat the run"), code(about.command));
    const rows = [
      ...facts(about.result ?? {}),
      ["Seed", about.options?.seed],
      ["Data", about.data?.path],
      ["SHA-256 of the data", about.data?.sha256],
      ...Object.entries(about.options ?? {}).filter(([name]) => name !== "seed").map(([name, value]) => [`Option ${name.replaceAll("_", " ")}`, plain(value)]),
      ...Object.entries(about.versions ?? {}).map(([name, version]) => [`Version of ${name}`, version]),
    ].filter(([, value]) => value !== null && value !== undefined && value !== "");
    root.append(
      h("h3", {}, "Result, options and versions"),
      h("dl", { class: "facts-list" }, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, String(value))))),
      h("h3", {}, "What to cite"),
      h("ul", {}, (about.citations ?? []).map((text) => h("li", {}, text))),
      h("h3", {}, "This page"),
      h("p", { class: "note" }, "This page is one file that needs no server and makes no requests. It contains code of d3 (ISC licence). The package sequela contains the text of the licences."),
    );
  },
};

function facts(result) {
  const converged = result.converged;
  return [
    ["Mean log-likelihood of the draws", result.mean_log_likelihood === undefined ? null : result.mean_log_likelihood.toFixed(3)],
    ["Penalised mean log-likelihood", result.objective === undefined ? null : result.objective.toFixed(6)],
    ["Converged", converged === undefined ? null : `${converged ? "yes" : "NO"}${result.kkt_residual === undefined ? "" : ` (KKT residual ${number(result.kkt_residual, 2)})`}`],
    ["Convergence", result.message],
    ["Penalty", result.penalty],
    ["Different optima found", result.optima],
    ["SHA-256 of theta", result.theta_sha256],
  ];
}

const plain = (value) => {
  if (value === null || (Array.isArray(value) && !value.length)) return "default";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
};

function code(text) {
  const copy = button("Copy", "Copy the command", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Select and copy by hand";
    }
  });
  copy.classList.add("no-print");
  return h("div", { class: "code" }, h("pre", {}, h("code", {}, text)), copy);
}
