// Builds the page that the Python package contains. Run npm ci first, then node build.mjs.
//
// Writes page.js, page.css, LICENSES.txt and page.json to src/sequela/report/page. page.json has the
// versions of the packages and the checksum of the sources. With this checksum, a test finds out
// whether the committed bundle was built from the present sources.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

import { build, transform } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "src", "sequela", "report", "page");

/** Return all files below a folder, sorted by their path. */
function filesBelow(folder) {
  return readdirSync(folder)
    .map((name) => join(folder, name))
    .flatMap((path) => (statSync(path).isDirectory() ? filesBelow(path) : [path]))
    .sort();
}

/** Return the SHA-256 of the paths and contents of all sources. */
function sourceChecksum() {
  const hash = createHash("sha256");
  const files = [...filesBelow(join(here, "src")), join(here, "package-lock.json")];
  const named = files.map((path) => [relative(here, path).split(sep).join("/"), path]);
  for (const [name, path] of named.sort((a, b) => (a[0] < b[0] ? -1 : 1))) {
    hash.update(name);
    hash.update(readFileSync(path, "utf8").replaceAll("\r\n", "\n"));
  }
  return hash.digest("hex");
}

/** Return the packages whose code is in the bundle, with version and licence. */
function bundledPackages(metafile) {
  const names = new Set();
  for (const path of Object.keys(metafile.inputs)) {
    const found = path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
    if (found) names.add(found[1]);
  }
  return [...names].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} has no licence file`);
    const text = readFileSync(join(folder, file), "utf8").trim();
    return { name, version: about.version, licence: about.license, text };
  });
}

const script = await build({
  entryPoints: [join(here, "src", "main.js")],
  absWorkingDir: here,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2021",
  charset: "ascii",
  legalComments: "none",
  metafile: true,
  write: false,
});
const style = await transform(readFileSync(join(here, "src", "style.css"), "utf8"), {
  loader: "css",
  minify: true,
  charset: "ascii",
});
const packages = bundledPackages(script.metafile);
const licences = packages
  .map((p) => `${p.name} ${p.version} (${p.licence})\n\n${p.text}\n`)
  .join("\n" + "-".repeat(80) + "\n\n");
const code = script.outputFiles[0].text.trim();
mkdirSync(target, { recursive: true });
writeFileSync(join(target, "page.js"), code + "\n");
writeFileSync(join(target, "page.css"), style.code.trim() + "\n");
writeFileSync(
  join(target, "LICENSES.txt"),
  "page.js contains code of these packages:\n\n" + licences,
);
const about = {
  sources: sourceChecksum(),
  packages: Object.fromEntries(packages.map((p) => [p.name, p.version])),
};
writeFileSync(join(target, "page.json"), JSON.stringify(about, null, 1) + "\n");
console.log(`page.js ${code.length} bytes, page.css ${style.code.length} bytes`);
