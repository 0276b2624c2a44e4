// Save figures as SVG and PNG, and tables as CSV. The browser saves the files; no data are sent.

import { inLight } from "./theme.js";

const COPIED = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity",
  "font-size", "font-weight", "font-family", "text-anchor", "dominant-baseline", "paint-order",
  "stroke-linejoin", "stroke-linecap", "image-rendering",
]; // prettier-ignore
const FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";

/** Offer text or a blob as a file. */
export function save(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = document.createElement("a");
  const url = URL.createObjectURL(blob);
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 120_000); // on a slow machine the download may start late
}

/** Return a copy of a drawing with its style in attributes: other programs have no style sheet. */
export function standalone(svg) {
  const box = svg.viewBox.baseVal;
  const width = box.width || svg.clientWidth;
  const height = box.height || svg.clientHeight;
  const copy = svg.cloneNode(true);
  const from = [svg, ...svg.querySelectorAll("*")];
  const to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, place) => {
    const style = getComputedStyle(element);
    for (const name of COPIED) {
      const value = style.getPropertyValue(name);
      if (value && value !== "auto" && value !== "normal") to[place].setAttribute(name, value);
    }
    to[place].setAttribute("font-family", FONT);
    if (style.display === "none" || style.visibility === "hidden") to[place].setAttribute("display", "none");
    for (const name of ["class", "tabindex", "role", "style"]) to[place].removeAttribute(name);
  });
  for (const gone of copy.querySelectorAll("[data-only=screen], [display=none]")) gone.remove();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  paper.setAttribute("width", width);
  paper.setAttribute("height", height);
  paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(paper);
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

/** Save as SVG the drawing that `find` returns. */
export function saveSvg(name, find) {
  save(`${name}.svg`, inLight(() => standalone(find())).text, "image/svg+xml");
}

/** Save as PNG the drawing that `find` returns, with enough pixels for print. */
export async function savePng(name, find, scale = 3) {
  const { text, width, height } = inLight(() => standalone(find()));
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  save(`${name}.png`, blob);
}

/** Save text as CSV; the mark at the beginning tells spreadsheets that it is UTF-8. */
export function saveCsv(name, text) {
  save(`${name}.csv`, `\ufeff${text}`, "text/csv;charset=utf-8");
}
