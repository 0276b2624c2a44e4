import assert from "node:assert/strict";
import { test } from "node:test";

import { buildTree, commonPaths, leastFor, treeSize } from "../src/maths/tree.js";

const ORDERS = [[0, 1, 2], [0, 1], [0, 2], [1], [], null];
const all = () => true;

test("samples share a branch as long as their orders agree", () => {
  const root = buildTree(ORDERS, all);
  assert.equal(root.count, 5);
  assert.equal(root.ended, 1);
  assert.deepEqual(
    root.children.map((c) => [c.item, c.count, c.ended]),
    [
      [0, 3, 0],
      [1, 1, 1],
    ],
  );
  assert.equal(treeSize(root), 5);
});

test("every sample is counted once, also if branches are left out", () => {
  const total = (node) => node.ended + node.rest + node.children.reduce((s, c) => s + total(c), 0);
  for (const least of [1, 2, 3, 4]) assert.equal(total(buildTree(ORDERS, all, least)), 5);
  assert.equal(treeSize(buildTree(ORDERS, all, 4)), 0);
  assert.equal(leastFor(ORDERS, all, 2), 2);
});

test("items that are not kept are skipped", () => {
  const root = buildTree(ORDERS, (item) => item !== 0);
  assert.deepEqual(
    root.children.map((c) => [c.item, c.count]),
    [
      [1, 3],
      [2, 1],
    ],
  );
});

test("common paths are beginnings of orders", () => {
  const { paths, of } = commonPaths(ORDERS, all, 2);
  assert.equal(of, 3);
  assert.deepEqual(paths[0], { path: [0, 1], count: 2 });
});
