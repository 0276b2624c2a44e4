// (d) The progression of the cohort: the tree of orders, the most common paths, and the position of
// each item with its band.

import { h } from "../core/dom.js";
import { counted } from "../core/text.js";
import { pathsFigure } from "./paths.js";
import { positionsFigure } from "./positions.js";
import { treeFigure } from "./tree.js";

export const progression = {
  id: "progression",
  title: "How does it progress?",
  short: "Progression",

  render(root, page) {
    const { data } = page;
    const orders = data.samples?.orders;
    if (orders) {
      const known = orders.filter(Boolean).length;
      const left = orders.length - known;
      root.append(
        h(
          "p",
          { class: "lead" },
          "Each sample contributes the order in which its items most probably came, given the model. ",
          left
            ? `Shown are ${known} of ${counted(orders.length, "sample")}; the others have missing cells, or too many items for an exact order.`
            : "",
        ),
        h(
          "p",
          { class: "note" },
          data.isPosterior
            ? "Each sample contributes its most likely order under one of the models that were drawn from the posterior, not under the same model for all samples. If the data cannot tell an order, both directions appear."
            : "These are the most likely orders of one model. If the data cannot tell, the opposite order may be equally plausible: see the first section.",
        ),
      );
      if (known) root.append(treeFigure(page), pathsFigure(page));
    }
    if (data.payload.positions) root.append(positionsFigure(page));
    if (!orders && !data.payload.positions) root.append(h("p", {}, "The report was made without samples."));
  },
};
