import assert from "node:assert/strict";
import { test } from "node:test";

import { history, likelyOrders, makeChain, nextItems } from "../src/maths/lattice.js";
import { integral, legendre, timePosterior } from "../src/maths/time.js";

const close = (a, b, tolerance = 1e-9) =>
  assert.ok(Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(b)), `${a} is not ${b}`);

/** All orders of a set. */
function orders(set) {
  if (!set.length) return [[]];
  return set.flatMap((x) => orders(set.filter((y) => y !== x)).map((rest) => [x, ...rest]));
}

function dense(chain) {
  const theta = Array.from({ length: chain.n }, () => new Float64Array(chain.n));
  chain.base.forEach((b, i) => (theta[i][i] = b));
  chain.out.forEach((to, i) => to.forEach(([j, effect]) => (theta[i][j] = effect)));
  return theta;
}

/** The probability of one order and the observation after it, from the definition. */
function orderWeight(chain, order) {
  const theta = dense(chain);
  const rate = (j, present) => Math.exp(present.reduce((s, i) => s + theta[i][j], theta[j][j]));
  const total = (present) =>
    theta.reduce((s, _, j) => (present.includes(j) ? s : s + rate(j, present)), chain.stopRate);
  let weight = chain.stopRate;
  const present = [];
  for (const item of order) {
    weight *= rate(item, present) / total(present);
    present.push(item);
  }
  return weight / total(present);
}

function someChain(n, seed) {
  let x = seed;
  const random = () => ((x = (x * 16807) % 2147483647) / 2147483647) * 2 - 1;
  const base = Array.from({ length: n }, random);
  const effects = { from: [], to: [], effect: [] };
  for (let i = 0; i < n; i += 1) {
    for (let j = 0; j < n; j += 1) {
      if (i === j || random() < -0.2) continue;
      effects.from.push(i);
      effects.to.push(j);
      effects.effect.push(2 * random());
    }
  }
  return makeChain(base, effects, 1.3);
}

test("history and likely orders agree with the sum over all orders", () => {
  const chain = someChain(6, 7);
  const set = [4, 0, 2, 5];
  const all = orders(set).map((order) => ({ order, weight: orderWeight(chain, order) }));
  const whole = all.reduce((s, x) => s + x.weight, 0);
  const found = history(chain, set);
  close(Math.exp(found.logProbability), whole);
  set.forEach((a, i) =>
    set.forEach((b, j) => {
      const ahead = all.filter((x) => x.order.indexOf(a) < x.order.indexOf(b));
      if (i !== j) close(found.before[i][j], ahead.reduce((s, x) => s + x.weight, 0) / whole);
      const there = all.filter((x) => x.order.indexOf(a) === j);
      close(found.place[i][j], there.reduce((s, x) => s + x.weight, 0) / whole);
    }),
  );
  all.sort((x, y) => y.weight - x.weight);
  likelyOrders(chain, set, 5).forEach((best, place) => {
    assert.deepEqual(best.order, all[place].order);
    close(best.probability, all[place].weight / whole);
  });
});

test("the observation time of an empty set is exponential", () => {
  const chain = someChain(3, 5);
  const total = chain.base.reduce((s, b) => s + Math.exp(b), chain.stopRate);
  const time = timePosterior(chain, []);
  for (const t of [0, 0.1, 1]) close(time.density(t), total * Math.exp(-total * t), 1e-8);
  close(time.mean, 1 / total, 1e-8);
  close(time.sd, 1 / total, 1e-7);
  close(time.quantile(0.5), Math.log(2) / total, 1e-7);
});

test("mean of the density and mean from the lattice agree", () => {
  for (const seed of [1, 2, 3, 4]) {
    const chain = someChain(8, seed);
    const set = [1, 2, 4, 6, 7];
    const time = timePosterior(chain, set);
    const found = history(chain, set);
    close(time.mean, found.time, 1e-7);
    close(time.cumulative(time.quantile(0.95)), 0.95, 1e-9);
  }
});

test("a fast item and a slow one need panels of very different lengths", () => {
  const chain = makeChain([12, -9], { from: [], to: [], effect: [] }, 1);
  const time = timePosterior(chain, [0, 1]);
  // The time depends on the slow item: it arrives at rate w, and then the sample is observed.
  const w = Math.exp(-9);
  const density = (t) => ((1 - Math.exp(-w * t)) * Math.exp(-t) * (1 + w)) / w;
  for (const t of [0.01, 0.5, 2, 6]) close(time.density(t), density(t), 2e-5);
});

test("probabilities of next items are proportional to their rates", () => {
  const chain = makeChain([0, Math.log(2), 1], { from: [2], to: [1], effect: [Math.log(3)] }, 1);
  const next = nextItems(chain, [2]);
  assert.deepEqual(
    next.items.map((x) => x.item),
    [1, 0],
  );
  close(next.items[0].probability, 6 / 8);
  close(next.items[0].share, 6 / 7);
  close(next.observedFirst, 1 / 8);
  close(next.waitingTime, 1 / 8);
  assert.equal(nextItems(chain, [0, 1, 2]).nextItemTime, Infinity);
});

test("Legendre series and their integrals", () => {
  // x^2 = 1/3 P0 + 2/3 P2
  const square = new Float64Array([1 / 3, 0, 2 / 3, 0]);
  for (const x of [-1, -0.3, 0.5, 1]) {
    close(legendre(square, x), x * x);
    close(integral(square, x), (x ** 3 + 1) / 3);
  }
});
