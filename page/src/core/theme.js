// Light and dark. Figures are saved in light colours, for paper, whatever the screen shows.

const CHANGED = "sequela-theme";

/** Return "light" or "dark". */
export function theme() {
  return document.documentElement.dataset.theme;
}

/** Change the theme; what was painted with colours of its own is painted again. */
export function setTheme(name) {
  if (theme() === name) return;
  document.documentElement.dataset.theme = name;
  document.dispatchEvent(new Event(CHANGED));
}

/** Call back whenever the theme has changed. */
export function onThemeChange(listener) {
  document.addEventListener(CHANGED, listener);
}

/** Return what `work` returns while the page is light; nothing of it is seen on the screen. */
export function inLight(work) {
  const before = theme();
  setTheme("light");
  try {
    return work();
  } finally {
    setTheme(before);
  }
}
