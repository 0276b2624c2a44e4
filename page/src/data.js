// Reads the data of the report for the views. The format is described in docs/report.md.

import { makeChain } from "./maths/lattice.js";
import { clean, shortenAll } from "./core/text.js";

export const FORMAT = "sequela report";
export const VERSION = 1;

/** Read the payload of a report; throw an error if this page cannot read its format or version. */
export function readPayload(payload) {
  if (payload.format !== FORMAT) throw new Error("The data of this page are not a sequela report.");
  if (payload.version !== VERSION) {
    throw new Error(
      `The data of this page have version ${payload.version}; this page reads ${VERSION}.`,
    );
  }
  const labels = payload.items.labels.map(clean);
  const { model } = payload;
  const orders = readOrders(payload.orders, labels.length);
  let chains = null;
  return {
    payload,
    labels,
    short: shortenAll(labels),
    n: labels.length,
    /** Whether the page can compute answers about single sets. */
    computes: model.stop_rate !== null,
    /** The Markov chain of the model, or one chain per draw of a posterior; made when first used. */
    chains() {
      chains ??= model.draws ? readDraws(model, labels.length) : [oneChain(model)];
      return chains;
    },
    isPosterior: Boolean(model.draws),
    edges: readEdges(model),
    frequency: payload.items.frequency ?? payload.items.expected,
    orders,
    verdicts: readVerdicts(payload.verdicts, orders),
    samples: readSamples(payload.samples),
  };
}

function oneChain(model) {
  return makeChain(model.base, { from: model.from, to: model.to, effect: model.effect }, model.stop_rate);
}

/** Return the draws of a posterior: little-endian floats in base64, draw after draw, row after row. */
export function readDraws(model, n) {
  const bytes = Uint8Array.from(atob(model.draws.theta), (sign) => sign.charCodeAt(0));
  const values = new DataView(bytes.buffer);
  return Array.from({ length: model.draws.count }, (_, draw) => {
    const base = new Float64Array(n);
    const effects = { from: [], to: [], effect: [] };
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j < n; j += 1) {
        const value = values.getFloat32(4 * ((draw * n + i) * n + j), true);
        if (i === j) base[i] = value;
        else if (value !== 0) {
          effects.from.push(i);
          effects.to.push(j);
          effects.effect.push(value);
        }
      }
    }
    return makeChain(Array.from(base), effects, model.stop_rate);
  });
}

/** Return the interactions, the strongest first, each with its certainty, or null if unknown. */
function readEdges(model) {
  const sure = model.certainty;
  const edges = model.from.map((from, e) => {
    const present = sure?.present?.[e] ?? null;
    const sign = sure?.sign_probability?.[e] ?? null;
    return {
      from,
      to: model.to[e],
      effect: model.effect[e],
      // The probability that the interaction is present. If this probability is not known, the
      // probability that the interaction has this sign.
      certainty: present ?? sign,
      opacity: present !== null ? Math.max(0.12, present) : sign === null ? 1 : Math.max(0.15, 2 * sign - 1),
      positive: sure?.positive?.[e] ?? null,
      low: sure?.low?.[e] ?? null,
      high: sure?.high?.[e] ?? null,
    };
  });
  return edges.sort((a, b) => Math.abs(b.effect) - Math.abs(a.effect));
}

/** Return functions that look up the order matrix; the payload contains its upper triangle. */
function readOrders(orders, n) {
  const none = { items: [], probability: () => NaN, together: () => NaN, draws: 0 };
  if (!orders) return none;
  const place = new Int32Array(n).fill(-1);
  orders.items.forEach((item, at) => (place[item] = at));
  const m = orders.items.length;
  const at = (a, b) => {
    const [i, j] = a < b ? [a, b] : [b, a];
    return (i * (2 * m - i - 1)) / 2 + (j - i - 1);
  };
  return {
    items: orders.items,
    draws: orders.draws,
    /** P(a before b | both observed); NaN if it is not known. */
    probability(a, b) {
      const [i, j] = [place[a], place[b]];
      if (i < 0 || j < 0 || i === j) return NaN;
      const found = orders.probability[at(i, j)];
      if (found === null) return NaN;
      return i < j ? found / 1000 : 1 - found / 1000;
    },
    /** P(both are observed). */
    together(a, b) {
      const [i, j] = [place[a], place[b]];
      if (i < 0 || j < 0 || i === j || !orders.together) return NaN;
      return orders.together[at(i, j)] / 100000;
    },
  };
}

/** Return the verdicts as rows. */
function readVerdicts(verdicts, orders) {
  const { rows } = verdicts;
  const get = (name, e) => rows[name]?.[e] ?? null;
  const together = (e) => {
    const share = orders.together(rows.first[e], rows.second[e]);
    return Number.isNaN(share) ? null : share;
  };
  return {
    ...verdicts,
    rows: rows.first.map((first, e) => ({
      first,
      second: rows.second[e],
      probability: get("probability", e),
      se: get("se", e),
      observed: get("observed", e) ?? together(e),
      low: get("low", e),
      high: get("high", e),
      evidence: get("evidence", e),
      usuallyFirst: get("usually_first", e),
      samples: get("samples", e),
      effective: get("effective", e),
      rHat: get("r_hat", e),
      verdict: get("verdict", e) ?? "unchecked",
      baseline: get("baseline", e),
    })),
  };
}

function readSamples(samples) {
  if (!samples) return null;
  return {
    ...samples,
    labels: samples.labels.map(clean),
    count: samples.labels.length,
  };
}
