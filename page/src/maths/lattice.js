// Exact answers for one set: the recursions of docs/maths.md over all subsets of at most 12 items.
//
// All numbers are logarithms, so that extreme rates do not reduce the accuracy.

export const MAX_SET = 12;

/**
 * Make a chain from the data of the report.
 * @param base log base rate of each item
 * @param effects arrays from, to, effect of equal length: the interactions that are not zero
 * @param stopRate rate of the observation
 */
export function makeChain(base, effects, stopRate) {
  const out = base.map(() => []);
  for (let e = 0; e < effects.from.length; e += 1) {
    out[effects.from[e]].push([effects.to[e], effects.effect[e]]);
  }
  return { n: base.length, base: Float64Array.from(base), out, stopRate };
}

/** Return log(sum of exp) of the first `count` values. */
export function logSum(values, count = values.length) {
  let top = -Infinity;
  for (let a = 0; a < count; a += 1) if (values[a] > top) top = values[a];
  if (!Number.isFinite(top)) return top;
  let sum = 0;
  for (let a = 0; a < count; a += 1) sum += Math.exp(values[a] - top);
  return top + Math.log(sum);
}

/** Return a log rate for every subset of a set: `base` plus the effects of the subset's items. */
function overSubsets(base, effects) {
  const k = effects.length;
  const logs = new Float64Array(1 << k);
  logs[0] = base;
  for (let b = 0; b < k; b += 1) {
    const half = 1 << b;
    for (let state = 0; state < half; state += 1) logs[half + state] = logs[state] + effects[b];
  }
  return logs;
}

/** Return, for each item on which an item of the set acts, the effects of all items of the set. */
function actedOn(chain, set) {
  const columns = new Map();
  set.forEach((item, b) => {
    for (const [to, effect] of chain.out[item]) {
      if (!columns.has(to)) columns.set(to, new Float64Array(set.length));
      columns.get(to)[b] = effect;
    }
  });
  return columns;
}

/**
 * Return, for all subsets, the log rate of each item of the set and the log exit rate, which
 * includes the observation.
 * Bit b of a state is item set[b].
 */
export function rates(chain, set) {
  const k = set.length;
  const states = 1 << k;
  const columns = actedOn(chain, set);
  const none = new Float64Array(k);
  const logRate = set.map((item) => overSubsets(chain.base[item], columns.get(item) ?? none));
  const inside = new Set(set);
  let constant = Math.log(chain.stopRate);
  const varying = [];
  const still = [constant];
  for (let j = 0; j < chain.n; j += 1) {
    if (inside.has(j)) continue;
    const effects = columns.get(j);
    if (effects) varying.push(overSubsets(chain.base[j], effects));
    else still.push(chain.base[j]);
  }
  constant = logSum(still);
  const logExit = new Float64Array(states);
  const terms = new Float64Array(1 + varying.length + k);
  for (let state = 0; state < states; state += 1) {
    let count = 0;
    terms[count++] = constant;
    for (const logs of varying) terms[count++] = logs[state];
    for (let b = 0; b < k; b += 1) if (!((state >> b) & 1)) terms[count++] = logRate[b][state];
    logExit[state] = logSum(terms, count);
  }
  return { k, states, logRate, logExit };
}

/** Return the forward weights F and the backward weights T of docs/maths.md, as logarithms. */
export function weights(found) {
  const { k, states, logRate, logExit } = found;
  const forward = new Float64Array(states);
  const backward = new Float64Array(states);
  const terms = new Float64Array(k);
  forward[0] = -logExit[0];
  for (let state = 1; state < states; state += 1) {
    let count = 0;
    for (let b = 0; b < k; b += 1) {
      if ((state >> b) & 1) {
        const before = state ^ (1 << b);
        terms[count++] = forward[before] + logRate[b][before];
      }
    }
    forward[state] = logSum(terms, count) - logExit[state];
  }
  const full = states - 1;
  backward[full] = -logExit[full];
  for (let state = full - 1; state >= 0; state -= 1) {
    let count = 0;
    for (let b = 0; b < k; b += 1) {
      if (!((state >> b) & 1)) terms[count++] = logRate[b][state] + backward[state | (1 << b)];
    }
    backward[state] = logSum(terms, count) - logExit[state];
  }
  return { forward, backward };
}

/**
 * Return what probably happened to a sample with this set: `logProbability`, the log-probability of
 * the set; `time`, its mean observation time; `arrival`, the mean arrival time of each item;
 * `place[c][k]`, the probability that k items came before item c; and `before[a][b]`, the
 * probability that item a came before item b.
 */
export function history(chain, set) {
  const found = rates(chain, set);
  const { k, states, logRate } = found;
  const { forward, backward } = weights(found);
  const whole = forward[states - 1];
  const before = set.map(() => new Float64Array(k));
  const place = set.map(() => new Float64Array(k));
  const arrival = new Float64Array(k);
  let time = 0;
  for (let state = 0; state < states; state += 1) {
    const stay = Math.exp(forward[state] + backward[state] - whole);
    time += stay;
    let size = 0;
    for (let b = 0; b < k; b += 1) size += (state >> b) & 1;
    for (let c = 0; c < k; c += 1) {
      if ((state >> c) & 1) continue;
      arrival[c] += stay;
      const step = Math.exp(
        forward[state] + logRate[c][state] + backward[state | (1 << c)] - whole,
      );
      place[c][size] += step;
      for (let a = 0; a < k; a += 1) if ((state >> a) & 1) before[a][c] += step;
    }
  }
  return { logProbability: Math.log(chain.stopRate) + whole, time, arrival, place, before };
}

/** Return the most likely orders of a set, the best first, as a list of { order, probability }. */
export function likelyOrders(chain, set, count = 5) {
  const found = rates(chain, set);
  const { k, states, logRate, logExit } = found;
  const whole = weights(found).forward[states - 1];
  // The best paths to each state: log weight, last item, and the path to the state before it.
  const best = new Array(states);
  best[0] = [{ weight: -logExit[0], item: -1, from: null }];
  for (let state = 1; state < states; state += 1) {
    const ways = [];
    for (let b = 0; b < k; b += 1) {
      if (!((state >> b) & 1)) continue;
      const before = state ^ (1 << b);
      for (const from of best[before]) {
        const weight = from.weight + logRate[b][before] - logExit[state];
        ways.push({ weight, item: b, from });
      }
    }
    ways.sort((x, y) => y.weight - x.weight);
    best[state] = ways.slice(0, count);
  }
  return best[states - 1].map((way) => {
    const order = [];
    for (let at = way; at.from; at = at.from) order.unshift(set[at.item]);
    return { order, probability: Math.exp(way.weight - whole) };
  });
}

/**
 * Return which item comes next if the items of a set are present. For each absent item, the most
 * probable first: its `rate`; the `probability` that it is the next item and arrives before the
 * observation; and its `share`, the probability that it is the next item, no matter when.
 */
export function nextItems(chain, set) {
  const inside = new Set(set);
  const logs = Float64Array.from(chain.base);
  for (const item of set) for (const [to, effect] of chain.out[item]) logs[to] += effect;
  const absent = [];
  for (let j = 0; j < chain.n; j += 1) if (!inside.has(j)) absent.push(j);
  const items = logSum(absent.map((j) => logs[j]));
  const stop = Math.log(chain.stopRate);
  const total = logSum([items, stop]);
  const next = absent.map((item) => ({
    item,
    rate: Math.exp(logs[item]),
    probability: Math.exp(logs[item] - total),
    share: Math.exp(logs[item] - items),
  }));
  next.sort((x, y) => y.probability - x.probability || x.item - y.item);
  return {
    items: next,
    observedFirst: Math.exp(stop - total),
    waitingTime: Math.exp(-total),
    nextItemTime: Math.exp(-items),
  };
}
