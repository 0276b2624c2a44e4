// The light and the dark theme. Figures are always saved in light colours, because paper is white.

const CHANGED = "sequela-theme";

/** Return "light" or "dark". */
export function theme() {
  return document.documentElement.dataset.theme;
}

/** Change the theme, and notify the views: they redraw what the style sheet does not colour. */
export function setTheme(name) {
  if (theme() === name) return;
  document.documentElement.dataset.theme = name;
  document.dispatchEvent(new Event(CHANGED));
}

/** Call `listener` whenever the theme has changed. */
export function onThemeChange(listener) {
  document.addEventListener(CHANGED, listener);
}

/** Run `work` in the light theme and return its result; the screen keeps its own theme. */
export function inLight(work) {
  const before = theme();
  setTheme("light");
  try {
    return work();
  } finally {
    setTheme(before);
  }
}
