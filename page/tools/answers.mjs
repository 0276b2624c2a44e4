// Reads models and sets from standard input, and prints the answers of the page. A test compares them
// with Python.
import { readFileSync } from "node:fs";

import { readDraws } from "../src/data.js";
import { answersNow } from "../src/maths/average.js";
import { makeChain } from "../src/maths/lattice.js";
import { buildTree } from "../src/maths/tree.js";

const cases = JSON.parse(readFileSync(0, "utf8"));
const list = (values) => Array.from(values);
const answers = cases.map(({ base, effects, stopRate, set, times, orders, keep, least, model, n }) => {
  if (orders) return buildTree(orders, (item) => keep.includes(item), least);
  const chains = model ? readDraws(model, n) : [makeChain(base, effects, stopRate)];
  const { time, past, orders: best, next } = answersNow(chains, set, 3);
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
    orders: best,
    next: next.items,
    observedFirst: next.observedFirst,
    nextItemTime: Number.isFinite(next.nextItemTime) ? next.nextItemTime : null,
  };
});
process.stdout.write(JSON.stringify(answers));
