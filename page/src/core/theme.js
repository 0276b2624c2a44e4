// The light and the dark theme. Figures are always saved in light colours, because paper is white.

const CHANGED = "sequela-theme";

/** Return "light" or "dark". */
export function theme() {
  return document.documentElement.dataset.theme;
}

/** Change the theme, and tell the views, which draw again what does not follow the style sheet. */
export function setTheme(name) {
  if (theme() === name) return;
  document.documentElement.dataset.theme = name;
  document.dispatchEvent(new Event(CHANGED));
}

/** Call `listener` whenever the theme has changed. */
export function onThemeChange(listener) {
  document.addEventListener(CHANGED, listener);
}

/** Return the result of `work` in the light theme; the screen does not show this theme. */
export function inLight(work) {
  const before = theme();
  setTheme("light");
  try {
    return work();
  } finally {
    setTheme(before);
  }
}
