// Answers about one set: those of one model, or their averages over the draws of a posterior.
//
// All draws have the same weight, as in the questions to a posterior in Python.

import { history, likelyOrders, nextItems, rates, weights } from "./lattice.js";
import { timePosterior } from "./time.js";

// Number of best orders per draw. The orders that are best on average are chosen from these.
const CANDIDATES = 5;

/**
 * Compute the answers for a set, one draw after the other. This generator yields the share of the
 * work that is done, and returns { time, past, orders, next }. If there is only one chain, these are
 * the answers of its model.
 */
export function* averageAnswers(chains, set, count = CANDIDATES) {
  const times = [];
  const pasts = [];
  const steps = [];
  const found = new Map();
  const total = 2 * chains.length;
  for (const chain of chains) {
    times.push(timePosterior(chain, set));
    pasts.push(history(chain, set));
    steps.push(nextItems(chain, set));
    for (const { order } of likelyOrders(chain, set, CANDIDATES)) found.set(order.join(), { order, probability: 0 });
    yield times.length / total;
  }
  const orders = [...found.values()];
  let done = chains.length;
  for (const chain of chains) {
    addOrders(chain, set, orders, 1 / chains.length);
    done += 1;
    yield done / total;
  }
  orders.sort((a, b) => b.probability - a.probability || (a.order.join() < b.order.join() ? -1 : 1));
  return {
    time: mixture(times),
    past: meanHistory(pasts),
    orders: orders.slice(0, count),
    next: meanNext(steps),
  };
}

/** Compute all answers without a pause, and return them. */
export function answersNow(chains, set, count = CANDIDATES) {
  const work = averageAnswers(chains, set, count);
  for (;;) {
    const { value, done } = work.next();
    if (done) return value;
  }
}

/** Return the probabilities of the next items, averaged over the chains. */
export function averageNext(chains, set) {
  return meanNext(chains.map((chain) => nextItems(chain, set)));
}

/** Add to each order its probability given the set, times `share`. */
function addOrders(chain, set, orders, share) {
  const known = rates(chain, set);
  const { states, logRate, logExit } = known;
  const whole = weights(known).forward[states - 1];
  const bit = new Map(set.map((item, b) => [item, b]));
  for (const entry of orders) {
    let state = 0;
    let weight = -logExit[0];
    for (const item of entry.order) {
      const b = bit.get(item);
      weight += logRate[b][state];
      state |= 1 << b;
      weight -= logExit[state];
    }
    entry.probability += share * Math.exp(weight - whole);
  }
}

const mean = (values) => values.reduce((sum, x) => sum + x, 0) / values.length;

/** Return the mixture of several distributions of time, each with the same weight. */
function mixture(times) {
  if (times.length === 1) return times[0];
  const end = Math.max(...times.map((time) => time.end));
  const density = (t) => mean(times.map((time) => time.density(t)));
  const cumulative = (t) => mean(times.map((time) => time.cumulative(t)));
  const quantile = (p) => {
    // A quantile of a mixture lies between those of its parts.
    const parts = times.map((time) => time.quantile(p));
    let [low, high] = [Math.min(...parts), Math.max(...parts)];
    for (let step = 0; step < 100 && high - low > 1e-11 * high; step += 1) {
      const middle = (low + high) / 2;
      if (cumulative(middle) < p) low = middle;
      else high = middle;
    }
    return (low + high) / 2;
  };
  const centre = mean(times.map((time) => time.mean));
  // Law of total variance.
  const variance = mean(times.map((time) => time.sd ** 2 + (time.mean - centre) ** 2));
  return { density, cumulative, quantile, mean: centre, sd: Math.sqrt(variance), end };
}

function meanHistory(pasts) {
  if (pasts.length === 1) return pasts[0];
  const k = pasts[0].arrival.length;
  const cells = (name) =>
    Array.from({ length: k }, (_, a) => Float64Array.from({ length: k }, (__, b) => mean(pasts.map((past) => past[name][a][b]))));
  return {
    time: mean(pasts.map((past) => past.time)),
    arrival: Float64Array.from({ length: k }, (_, a) => mean(pasts.map((past) => past.arrival[a]))),
    place: cells("place"),
    before: cells("before"),
  };
}

function meanNext(steps) {
  if (steps.length === 1) return steps[0];
  const sums = new Map();
  for (const { items } of steps) {
    for (const { item, rate, probability, share } of items) {
      if (!sums.has(item)) sums.set(item, { item, rate: 0, probability: 0, share: 0 });
      const sum = sums.get(item);
      sum.rate += rate / steps.length;
      sum.probability += probability / steps.length;
      sum.share += share / steps.length;
    }
  }
  const items = [...sums.values()].sort((x, y) => y.probability - x.probability || x.item - y.item);
  return {
    items,
    observedFirst: mean(steps.map((step) => step.observedFirst)),
    waitingTime: mean(steps.map((step) => step.waitingTime)),
    nextItemTime: mean(steps.map((step) => step.nextItemTime)),
  };
}
