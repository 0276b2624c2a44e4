// Answers of the page for models and sets from standard input, for comparison with Python.
import { readFileSync } from "node:fs";

import { history, likelyOrders, makeChain, nextItems } from "../src/maths/lattice.js";
import { timePosterior } from "../src/maths/time.js";
import { buildTree } from "../src/maths/tree.js";

const cases = JSON.parse(readFileSync(0, "utf8"));
const list = (values) => Array.from(values);
const answers = cases.map(({ base, effects, stopRate, set, times, orders, keep, least }) => {
  if (orders) return buildTree(orders, (item) => keep.includes(item), least);
  const chain = makeChain(base, effects, stopRate);
  const past = history(chain, set);
  const time = timePosterior(chain, set);
  const next = nextItems(chain, set);
  return {
    logProbability: past.logProbability,
    before: past.before.map(list),
    place: past.place.map(list),
    arrival: list(past.arrival),
    mean: time.mean,
    sd: time.sd,
    density: times.map(time.density),
    cumulative: times.map(time.cumulative),
    quantiles: [0.05, 0.5, 0.95].map(time.quantile),
    orders: likelyOrders(chain, set, 3),
    next: next.items,
    observedFirst: next.observedFirst,
    nextItemTime: Number.isFinite(next.nextItemTime) ? next.nextItemTime : null,
  };
});
process.stdout.write(JSON.stringify(answers));
