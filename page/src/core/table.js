// A table that can be sorted, searched and downloaded. At first it shows only some of its rows.

import { h, newId, replace } from "./dom.js";
import { saveCsv } from "./download.js";
import { button } from "./figure.js";
import { counted, csv, integer, searchable } from "./text.js";

const PAGE = 25;

/**
 * Make a table.
 * @param name name of the CSV file
 * @param columns a list of { title, value(row), show(row), text, start: "up" or "down", help, csv }:
 *   `show` returns a node or text; if `text` is true, the column is searched and sorted as text;
 *   `start` is the direction in which the first click sorts; `csv` lists the columns that the CSV
 *   file has instead of this one: [[title, value(row)], ...]
 * @param rows the rows, in the order in which they are shown first
 * @param options caption, noun, search (false: no search), page (number of rows at first), controls,
 *   rowClass(row), and divider(row, before): a text between two rows of a table that is not sorted
 */
export function table(name, columns, rows, options = {}) {
  const noun = options.noun ?? "row";
  const state = { rows, query: "", keep: null, sort: null, down: false, shown: options.page ?? PAGE };
  const keys = new Map();
  const body = h("tbody");
  const count = h("span", { class: "count", "aria-live": "polite" });
  const more = h("div", { class: "more no-print" });
  const heads = columns.map((column, place) => head(column, place));
  const element = h(
    "div",
    { class: "table", "data-table": name },
    h(
      "div",
      { class: "controls no-print" },
      options.search === false ? null : searchBox(),
      options.controls ?? null,
      count,
      button("CSV", "Download this table as CSV", download, { class: "download" }),
    ),
    h(
      "div",
      { class: "table-scroll", tabindex: 0, role: "region", "aria-label": options.caption ?? "table" },
      h(
        "table",
        {},
        options.caption ? h("caption", { class: "hidden" }, options.caption) : null,
        h("thead", {}, h("tr", {}, heads)),
        body,
      ),
    ),
    more,
  );

  function head(column, place) {
    const arrow = h("span", { class: "arrow", "aria-hidden": "true" });
    const sort = h(
      "button",
      { type: "button", on: { click: () => sortBy(place) } },
      column.title,
      arrow,
    );
    return h(
      "th",
      { scope: "col", class: column.text ? "" : "number", "aria-sort": "none" },
      sort,
      column.help ? h("span", { class: "help" }, column.help) : null,
    );
  }

  function searchBox() {
    const id = newId("search");
    const input = h("input", { id, type: "search", placeholder: "Search" });
    input.addEventListener("input", () => {
      state.query = searchable(input.value.trim());
      draw();
    });
    return h("span", { class: "control" }, h("label", { for: id, class: "hidden" }, "Search"), input);
  }

  function sortBy(place) {
    const first = columns[place].start === "down" || !columns[place].text;
    state.down = state.sort === place ? !state.down : first;
    state.sort = place;
    heads.forEach((th, at) => {
      const own = at === place;
      th.setAttribute("aria-sort", own ? (state.down ? "descending" : "ascending") : "none");
      th.querySelector(".arrow").textContent = own ? (state.down ? " \u25be" : " \u25b4") : "";
    });
    draw();
  }

  function keyOf(row) {
    if (!keys.has(row)) {
      const texts = columns.filter((column) => column.text).map((column) => column.value(row));
      keys.set(row, searchable(texts.join(" \u0000 ")));
    }
    return keys.get(row);
  }

  function chosen() {
    let found = state.rows;
    if (state.keep) found = found.filter(state.keep);
    if (state.query) {
      const words = state.query.split(/\s+/);
      found = found.filter((row) => words.every((word) => keyOf(row).includes(word)));
    }
    if (state.sort === null) return found;
    const { value, text } = columns[state.sort];
    const sign = state.down ? -1 : 1;
    const compare = text ? (a, b) => (a < b ? -1 : a > b ? 1 : 0) : (a, b) => a - b;
    const absent = (x) => x === null || x === undefined || Number.isNaN(x);
    return [...found].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (absent(x) || absent(y)) return absent(x) - absent(y);
      return sign * compare(x, y);
    });
  }

  function divider(row, before) {
    const text = state.sort === null && options.divider ? options.divider(row, before) : null;
    return text ? h("tr", { class: "divider" }, h("td", { colspan: columns.length }, h("span", {}, text))) : null;
  }

  function download() {
    const parts = columns.flatMap((column) => column.csv ?? [[column.title, column.value]]);
    const rows = chosen().map((row) => parts.map(([, value]) => value(row)));
    saveCsv(name, csv(parts.map(([title]) => title), rows));
  }

  function draw() {
    const found = chosen();
    const all = state.rows.length;
    count.textContent =
      found.length === all ? counted(all, noun) : `${integer(found.length)} of ${counted(all, noun)}`;
    replace(
      body,
      found.slice(0, state.shown).map((row, at) => [
        divider(row, found[at - 1]),
        h(
          "tr",
          options.rowClass ? { class: options.rowClass(row) } : {},
          columns.map((column, place) =>
            h(
              place === 0 ? "th" : "td",
              { class: column.text ? "" : "number", scope: place === 0 ? "row" : null },
              column.show ? column.show(row) : column.value(row),
            ),
          ),
        ),
      ]),
    );
    if (!found.length) body.append(h("tr", {}, h("td", { colspan: columns.length }, "Nothing found.")));
    const left = found.length - state.shown;
    replace(
      more,
      left > 0
        ? button(`Show ${integer(Math.min(left, 8 * PAGE))} more`, null, () => {
            state.shown += 8 * PAGE;
            draw();
          })
        : null,
    );
  }

  draw();
  return {
    element,
    /** Show only the rows for which `keep` is true. */
    filter(keep) {
      state.keep = keep;
      draw();
    },
    /** Show other rows. */
    setRows(next) {
      state.rows = next;
      keys.clear();
      draw();
    },
  };
}
