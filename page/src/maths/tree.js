// The orders of many samples as a tree: samples share a branch as long as their orders are equal.

/**
 * Build the tree of the orders. Only items for which keep(item) is true are used. A branch with
 * fewer than `least` samples is left out; its samples are counted in `rest` of its parent.
 * A node is { item, count, ended, rest, children }: `count` samples reach it, and the orders of
 * `ended` of these samples end there.
 */
export function buildTree(orders, keep, least = 1) {
  const root = node(-1);
  for (const order of orders) {
    if (!order) continue;
    let at = root;
    at.count += 1;
    for (const item of order) {
      if (!keep(item)) continue;
      if (!at.next.has(item)) at.next.set(item, node(item));
      at = at.next.get(item);
      at.count += 1;
    }
    at.ended += 1;
  }
  return finish(root, least);
}

const node = (item) => ({ item, count: 0, ended: 0, next: new Map() });

function finish(from, least) {
  const children = [...from.next.values()].sort((a, b) => b.count - a.count || a.item - b.item);
  const kept = children.filter((child) => child.count >= least);
  const rest = children.reduce((sum, child) => sum + (child.count < least ? child.count : 0), 0);
  const { item, count, ended } = from;
  return { item, count, ended, rest, children: kept.map((child) => finish(child, least)) };
}

/** Return the number of nodes of a tree, its root not counted. */
export function treeSize(root) {
  return root.children.reduce((sum, child) => sum + 1 + treeSize(child), 0);
}

/** Return the smallest number of samples per branch with which a tree has at most `most` nodes. */
export function leastFor(orders, keep, most) {
  const total = orders.length;
  for (let least = 1; least < total; least += 1 + Math.floor(least / 4)) {
    if (treeSize(buildTree(orders, keep, least)) <= most) return least;
  }
  return Math.max(total, 1);
}

/**
 * Return the beginnings of orders: `paths` is a list of { path, count }, the most frequent first,
 * and each path has `length` items. Orders with fewer items for which keep(item) is true are not
 * counted; `of` is the number of orders that are counted.
 */
export function commonPaths(orders, keep, length) {
  const counts = new Map();
  let of = 0;
  for (const order of orders) {
    if (!order) continue;
    const kept = order.filter(keep);
    if (kept.length < length) continue;
    of += 1;
    const path = kept.slice(0, length);
    const key = path.join(",");
    if (!counts.has(key)) counts.set(key, { path, count: 0 });
    counts.get(key).count += 1;
  }
  const paths = [...counts.values()].sort((a, b) => b.count - a.count || (a.path < b.path ? -1 : 1));
  return { paths, of };
}
