// The page: reads its data, lays out the sections, and draws a section when it comes into view.

import { h, prose, replace } from "./core/dom.js";
import { button } from "./core/figure.js";
import { counted, shorten } from "./core/text.js";
import { onThemeChange, setTheme, theme } from "./core/theme.js";
import { readPayload } from "./data.js";
import { itemDialog } from "./views/item.js";
import { verdicts } from "./views/verdicts.js";
import { network } from "./views/network.js";
import { matrices } from "./views/matrices.js";
import { progression } from "./views/progression.js";
import { patient } from "./views/patient.js";
import { cohort } from "./views/cohort.js";
import { fit } from "./views/fit.js";
import { made } from "./views/made.js";

const VIEWS = [verdicts, network, matrices, progression, patient, cohort, fit, made];

/** Return the page object that all views share. */
function makePage(data) {
  const order = data.labels.map((_, i) => i);
  if (data.frequency) order.sort((a, b) => data.frequency[b] - data.frequency[a] || a - b);
  const page = {
    data,
    itemsByFrequency: order,
    openItem: () => {},
    openSample: () => {},
    onTheme: onThemeChange,
    /** A label as isolated text, so that its writing direction does not change other text. */
    name: (item) => h("bdi", { class: "label" }, shorten(data.labels[item], 60)),
    /** A label in a list of choices. */
    option: (item) => shorten(data.labels[item], 40),
    /** A label that opens the details of the item. */
    item: (item) =>
      h(
        "button",
        { type: "button", class: "link", on: { click: () => page.openItem(item) } },
        h("bdi", {}, shorten(data.labels[item], 40)),
      ),
  };
  return page;
}

function heading(data) {
  const { payload } = data;
  const facts = [];
  if (data.samples) facts.push(counted(data.samples.count, "sample"));
  facts.push(counted(data.n, "item"));
  if (data.isPosterior) {
    facts.push(`${counted(data.edges.filter((edge) => edge.certainty > 0.5).length, "interaction")} with a probability above 0.5`);
  } else facts.push(counted(data.edges.length, "interaction"));
  return h(
    "header",
    { class: "top" },
    h("p", { class: "brand" }, "sequela report"),
    h("h1", {}, h("bdi", {}, shorten(payload.title, 80))),
    h("p", { class: "facts" }, facts.join(" \u00b7 ")),
    (payload.warnings ?? []).map((text) => h("p", { class: "callout warning", role: "note" }, prose(String(text)))),
  );
}

function navigation() {
  return h(
    "nav",
    { class: "contents no-print", "aria-label": "Sections" },
    h("ol", {}, VIEWS.map((view) => h("li", {}, h("a", { href: `#${view.id}` }, view.short ?? view.title)))),
    themeButton(),
  );
}

function themeButton() {
  const other = () => (theme() === "dark" ? "light" : "dark");
  const name = () => (theme() === "dark" ? "Light" : "Dark");
  const made = button(name(), null, () => setTheme(other()));
  onThemeChange(() => (made.textContent = name()));
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));
  // Print in the light theme, because paper is white.
  let before = null;
  addEventListener("beforeprint", () => {
    before = theme();
    setTheme("light");
  });
  addEventListener("afterprint", () => before === "dark" && setTheme("dark"));
  return made;
}

/** Mark, in the list of contents, the section that is in the middle of the window. */
function markCurrent(sections) {
  const links = new Map(sections.map(({ view }) => [view.id, document.querySelector(`nav a[href="#${view.id}"]`)]));
  const watcher = new IntersectionObserver(
    (seen) => {
      for (const one of seen) {
        if (!one.isIntersecting) continue;
        for (const [id, link] of links) {
          if (id === one.target.id) {
            link.setAttribute("aria-current", "true");
            // In a narrow window the links are in one row, which may be wider than the window.
            const row = link.closest("ol");
            row.scrollLeft = link.offsetLeft - row.offsetLeft - (row.clientWidth - link.offsetWidth) / 2;
          } else link.removeAttribute("aria-current");
        }
      }
    },
    { rootMargin: "-30% 0px -60% 0px" },
  );
  for (const { element } of sections) watcher.observe(element);
}

/** Draw a section when it comes near the window, or when the page is printed. */
function drawWhenSeen(sections) {
  const draw = (entry) => {
    if (entry.done) return;
    entry.done = true;
    watcher.unobserve(entry.element);
    try {
      entry.view.render(entry.body, entry.page);
      entry.element.dataset.drawn = "yes";
    } catch (error) {
      entry.element.dataset.drawn = "failed";
      entry.body.append(h("p", { class: "callout warning", role: "alert" }, `This part of the report could not be drawn: ${error.message}`));
      throw error;
    } finally {
      entry.body.removeAttribute("aria-busy");
    }
  };
  const watcher = new IntersectionObserver(
    (seen) => {
      for (const one of seen) if (one.isIntersecting) draw(sections.find((x) => x.element === one.target));
    },
    { rootMargin: "500px" },
  );
  for (const entry of sections) watcher.observe(entry.element);
  const all = () => sections.forEach((entry) => draw(entry));
  addEventListener("beforeprint", all);
  return { all, now: (id) => draw(sections.find((x) => x.view.id === id)) };
}

function start() {
  const root = document.documentElement;
  root.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const app = document.getElementById("app");
  let data;
  try {
    data = readPayload(JSON.parse(document.getElementById("data").textContent));
  } catch (error) {
    replace(app, h("p", { class: "callout warning", role: "alert" }, error.message));
    throw error;
  }
  const page = makePage(data);
  page.openItem = itemDialog(page);
  const sections = VIEWS.map((view) => {
    const body = h("div", { "aria-busy": "true" });
    const element = h("section", { id: view.id, "aria-labelledby": `${view.id}-title` }, h("h2", { id: `${view.id}-title` }, view.title), body);
    return { view, page, body, element };
  });
  replace(
    app,
    h("a", { class: "skip no-print", href: "#verdicts" }, "Skip to the first answer"),
    heading(data),
    h("div", { class: "frame" }, navigation(), h("main", {}, sections.map((entry) => entry.element))),
  );
  markCurrent(sections);
  const drawing = drawWhenSeen(sections);
  page.show = (id) => {
    drawing.now(id);
    document.getElementById(id).scrollIntoView({ block: "start" });
  };
  page.drawAll = drawing.all;
  root.dataset.ready = "yes";
}

start();
