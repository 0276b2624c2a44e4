// When a set was observed: the density of the observation time given the set.
//
// Let P_R(t) be the probability that the chain is in state R at time t and has not been observed. It
// solves P_R' = (sum of the flows into R) - D(R) P_R. Time is divided into intervals (panels). Each
// panel is twice as long as the one before it, and on each panel P_R is a Legendre series. If the
// equation is integrated once, it becomes a tridiagonal system for the coefficients of the series.
// Its pivots are positive for any exit rate. See docs/maths.md, "Functions of time".

import { rates, weights } from "./lattice.js";

const DEGREES = 24;
const MAX_PANELS = 1200;
const REST = 1e-10; // the last panel is the one after which less than this probability is left
const TINY = 1e-280; // smaller numbers are set to 0: processors are slow with denormal numbers
const FIRST = 2; // length of the first panel, times the largest exit rate

/** Solve y' = source - exit * y on a panel of half length `half` that starts with the value y0. */
function solvePanel(y, source, exit, half, y0, slope) {
  const z = exit * half;
  let inverse = 1 / (1 + z);
  slope[0] = (-z / 3) * inverse;
  y[0] = (y0 + half * (source[0] - source[1] / 3)) * inverse;
  for (let n = 1; n < DEGREES; n += 1) {
    const lower = z / (2 * n - 1);
    inverse = 1 / (1 - lower * slope[n - 1]);
    let given = source[n - 1] / (2 * n - 1);
    if (n + 1 < DEGREES) given -= source[n + 1] / (2 * n + 3);
    y[n] = (half * given - lower * y[n - 1]) * inverse;
    slope[n] = (-z / (2 * n + 3)) * inverse;
  }
  for (let n = DEGREES - 2; n >= 0; n -= 1) y[n] -= slope[n] * y[n + 1];
}

/** Return the value of a Legendre series at x in [-1, 1] (Clenshaw). */
export function legendre(y, x) {
  let one = 0;
  let two = 0;
  for (let n = y.length - 1; n >= 1; n -= 1) {
    const next = y[n] + ((2 * n + 1) / (n + 1)) * x * one - ((n + 1) / (n + 2)) * two;
    two = one;
    one = next;
  }
  return y[0] + x * one - 0.5 * two;
}

/** Return the integral of a Legendre series from -1 to x. */
export function integral(y, x) {
  const sums = new Float64Array(y.length + 1);
  sums[0] = y[0];
  sums[1] = y[0];
  for (let n = 1; n < y.length; n += 1) {
    sums[n + 1] += y[n] / (2 * n + 1);
    sums[n - 1] -= y[n] / (2 * n + 1);
  }
  return legendre(sums, x);
}

/**
 * Return the distribution of the observation time given a set: density(t), cumulative(t),
 * quantile(p), mean, sd, and `end`, the time after which the probability is numerically zero.
 */
export function timePosterior(chain, set) {
  const found = rates(chain, set);
  const { k, states, logRate, logExit } = found;
  const logWhole = weights(found).forward[states - 1];
  const exit = logExit.map(Math.exp);
  const rate = logRate.map((logs) => logs.map(Math.exp));
  const fastest = exit.reduce((a, b) => Math.max(a, b), 0);
  const y = new Float64Array(states * DEGREES);
  const source = new Float64Array(DEGREES);
  const slope = new Float64Array(DEGREES);
  const value = new Float64Array(states);
  // Divide by the probability of the set. So the result for a rare set is as exact as for a common
  // one.
  value[0] = Math.exp(-Math.max(logWhole, -600));
  const scale = Math.exp(-600 - Math.min(logWhole, -600));
  const panels = [];
  let start = 0;
  let length = FIRST / fastest;
  let mass = 0;
  while (panels.length < MAX_PANELS) {
    const half = length / 2;
    for (let state = 0; state < states; state += 1) {
      source.fill(0);
      for (let b = 0; b < k; b += 1) {
        if (!((state >> b) & 1)) continue;
        const before = state ^ (1 << b);
        const r = rate[b][before];
        const at = before * DEGREES;
        if (y[at] < TINY && y[at] > -TINY) continue;
        for (let n = 0; n < DEGREES; n += 1) source[n] += r * y[at + n];
      }
      const own = y.subarray(state * DEGREES, (state + 1) * DEGREES);
      solvePanel(own, source, exit[state], half, value[state], slope);
      let end = 0;
      for (let n = 0; n < DEGREES; n += 1) end += own[n];
      value[state] = Math.abs(end) < TINY ? 0 : end;
    }
    const series = y.slice((states - 1) * DEGREES).map((c) => c * scale);
    panels.push({ start, half, series, before: mass });
    const added = half * 2 * series[0];
    mass += added;
    if (start > 0) length *= 2;
    start += half * 2;
    // Rounding errors may leave slightly more than REST; stop if no probability is added.
    if (1 - mass < REST || (mass > 0.5 && added < 1e-14)) break;
  }
  return distribution(panels, start);
}

/** Return the functions of time, the mean and the standard deviation of a density on panels. */
function distribution(panels, end) {
  const find = (t) => {
    let low = 0;
    let high = panels.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (panels[middle].start <= t) low = middle;
      else high = middle - 1;
    }
    return panels[low];
  };
  const place = (panel, t) => Math.min((t - panel.start) / panel.half - 1, 1);
  const density = (t) => {
    if (t < 0 || t > end) return 0;
    const panel = find(t);
    return legendre(panel.series, place(panel, t));
  };
  const cumulative = (t) => {
    if (t <= 0) return 0;
    if (t >= end) return 1;
    const panel = find(t);
    return panel.before + panel.half * integral(panel.series, place(panel, t));
  };
  const quantile = (p) => {
    let low = 0;
    let high = end;
    for (let step = 0; step < 200 && high - low > 1e-12 * high; step += 1) {
      const middle = (low + high) / 2;
      if (cumulative(middle) < p) low = middle;
      else high = middle;
    }
    return (low + high) / 2;
  };
  let mean = 0;
  let square = 0;
  for (const { start, half, series } of panels) {
    const middle = start + half;
    const zero = 2 * series[0];
    const one = (2 * series[1]) / 3;
    const two = (2 * series[0]) / 3 + (4 * series[2]) / 15; // integral of x^2 y
    mean += half * (middle * zero + half * one);
    square += half * (middle * middle * zero + 2 * middle * half * one + half * half * two);
  }
  const sd = Math.sqrt(Math.max(square - mean * mean, 0));
  return { density, cumulative, quantile, mean, sd, end };
}
