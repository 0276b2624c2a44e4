// (d) The progression of the cohort: the tree of orders, the most common paths, and when each item
// arrives.

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
          "The figures use, for each sample, the order in which its items most probably arrived, according to the model. ",
          left
            ? `They show ${known} of ${counted(orders.length, "sample")}. The other samples have too many items, or too many missing cells, to compute their orders.`
            : "",
          data.samples.incomplete
            ? ` In ${counted(data.samples.incomplete, "sample")}, cells are missing. Their orders are those of the items that they are known to have.`
            : "",
        ),
        h(
          "p",
          { class: "note" },
          data.isPosterior
            ? "The order of each sample is its most likely order under one of the models that were drawn from the posterior. Different samples use different models. So if the data cannot tell the order of two items, both orders appear."
            : "All orders are those of one model. If the data cannot tell the order of two items, the opposite order may be equally plausible: see the section \u201cCan the data tell?\u201d.",
        ),
      );
      if (known) root.append(treeFigure(page), pathsFigure(page));
    }
    if (data.payload.positions) root.append(positionsFigure(page));
    if (!orders && !data.payload.positions) root.append(h("p", {}, "The report was made without samples."));
  },
};
