// Axes of figures, and shapes that several figures share.

import { s } from "./dom.js";
import { number } from "./text.js";

/** Draw a horizontal axis below a figure, with a title. */
export function axisBelow(scale, y, { title, ticks = 6, format = (x) => number(x, 3), grid = 0 }) {
  const [x0, x1] = scale.range();
  return s(
    "g",
    { class: "axis-group" },
    s("line", { x1: x0, x2: x1, y1: y, y2: y, class: "axis" }),
    scale.ticks(ticks).map((t) => [
      grid ? s("line", { x1: scale(t), x2: scale(t), y1: y, y2: y - grid, class: "grid" }) : null,
      s("line", { x1: scale(t), x2: scale(t), y1: y, y2: y + 4, class: "axis" }),
      s("text", { x: scale(t), y: y + 16, class: "tick", "text-anchor": "middle" }, format(t)),
    ]),
    title ? s("text", { x: (x0 + x1) / 2, y: y + 33, class: "axis-title", "text-anchor": "middle" }, title) : null,
  );
}

/** Draw a vertical axis on the left of a figure, with a title above it. */
export function axisLeft(scale, x, { title, ticks = 5, format = (v) => number(v, 3), grid = 0 }) {
  const [y0, y1] = scale.range();
  return s(
    "g",
    { class: "axis-group" },
    s("line", { x1: x, x2: x, y1: y0, y2: y1, class: "axis" }),
    scale.ticks(ticks).map((t) => [
      grid ? s("line", { x1: x, x2: x + grid, y1: scale(t), y2: scale(t), class: "grid" }) : null,
      s("line", { x1: x - 4, x2: x, y1: scale(t), y2: scale(t), class: "axis" }),
      s("text", { x: x - 7, y: scale(t) + 3.5, class: "tick", "text-anchor": "end" }, format(t)),
    ]),
    title ? s("text", { x: x - 4, y: Math.min(y0, y1) - 8, class: "axis-title", "text-anchor": "start" }, title) : null,
  );
}

/** Make the <svg> of a figure. A text next to the <svg> must describe what the figure shows. */
export function drawing(width, height, ...children) {
  return s(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width: "100%", class: "plot", role: "group" },
    ...children,
  );
}

/** Paint cells into a picture, one pixel per cell, and return the picture as an SVG image. */
export function raster(columns, rows, colour, box) {
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(columns, rows);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const rgba = colour(row, column);
      if (rgba) pixels.data.set(rgba, 4 * (row * columns + column));
    }
  }
  context.putImageData(pixels, 0, 0);
  return s("image", { href: canvas.toDataURL(), class: "raster", preserveAspectRatio: "none", ...box });
}

/** Draw a colour bar with texts at its ends and, if given, in the middle. */
export function colourBar(x, y, width, colour, texts) {
  const steps = 64;
  return s(
    "g",
    {},
    raster(steps, 1, (_, column) => colour(column / (steps - 1)), { x, y, width, height: 9 }),
    texts.map((text, place) =>
      s(
        "text",
        {
          x: x + (width * place) / (texts.length - 1),
          y: y + 21,
          class: "tick",
          "text-anchor": place === 0 ? "start" : place === texts.length - 1 ? "end" : "middle",
        },
        text,
      ),
    ),
  );
}
