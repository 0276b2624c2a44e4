// The colours of the report and of the static figures (src/sequela/plots/style.py; a test compares
// the two). In the dark theme, the same hues are lighter, and the middle of a scale is a dark grey.

export const PALETTE = {
  line: "#1f4e79",
  promotes: "#c8590b",
  inhibits: "#1f4e79",
  blues: ["#12375a", "#2f6da3", "#93bfdf"],
  oranges: ["#f6b583", "#cc6215", "#7a2f05"],
  middle: "#f7f7f7",
  series: ["#1f4e79", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#000000", "#e69f00"],
};

const DARK = {
  line: "#7fb6e6",
  promotes: "#f2975a",
  inhibits: "#7fb6e6",
  blues: ["#a9d4f5", "#5b9fd6", "#2c5f8c"],
  oranges: ["#8a4a1f", "#e08442", "#ffc89e"],
  middle: "#23282e",
  series: ["#7fb6e6", "#f2975a", "#3cc29a", "#e3a3c6", "#a6dcff", "#e8e8e8", "#f0bd4f"],
};

const SEQUENTIAL = {
  // Dark colours mean early, light colours late. The scale is viridis without its lightest part.
  light: ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#9fda3a"],
  dark: ["#c9a6ff", "#8f9bf0", "#62a9dd", "#4db7bd", "#52c49a", "#7fd475", "#cfe65a"],
};

const CLEAR = [0, 0, 0, 0];

/** Return whether the page is dark now. */
export function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

/** Return the colours of the present theme. */
export function palette(dark = isDark()) {
  return dark ? DARK : PALETTE;
}

/** Return red, green and blue of "#rrggbb". */
export function parse(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** Return the colour at the position `share` (0 to 1) of a scale of colours, as [r, g, b]. */
export function blend(stops, share) {
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  const [a, b] = [parse(stops[low]), parse(stops[low + 1])];
  return a.map((x, c) => Math.round(x + (b[c] - x) * (at - low)));
}

/** Return a colour scale from -1 (blue) through 0 to 1 (orange), as [r, g, b, a]. */
export function diverging(dark = isDark()) {
  const p = palette(dark);
  const stops = [...p.blues, p.middle, ...p.oranges];
  return (value, opacity = 1) =>
    Number.isFinite(value) ? [...blend(stops, (value + 1) / 2), Math.round(255 * opacity)] : CLEAR;
}

/** Return a colour scale from 0 (early) to 1 (late), as [r, g, b, a]. */
export function sequential(dark = isDark()) {
  const stops = SEQUENTIAL[dark ? "dark" : "light"];
  return (value, opacity = 1) => [...blend(stops, value), Math.round(255 * opacity)];
}

/** Return [r, g, b] as text for an attribute. */
export function css(rgb) {
  return `rgb(${rgb[0]},${rgb[1]},${rgb[2]})`;
}

/** Return how a transparent colour looks on the background of the page, as [r, g, b]. */
export function onPaper([r, g, b, a]) {
  const paper = isDark() ? [21, 25, 29] : [255, 255, 255];
  return [r, g, b].map((x, c) => Math.round(paper[c] + ((x - paper[c]) * a) / 255));
}

/** Return whether black letters are easier to read than white ones on a colour. */
export function isLight([r, g, b]) {
  return 0.299 * r + 0.587 * g + 0.114 * b > 150;
}
