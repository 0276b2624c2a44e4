// Functions that make elements. Text from the data is only ever put into text nodes. Attributes get
// constants, numbers, and ids that the page makes. So no label can become HTML, a script or an
// attribute.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["checked", "value", "disabled", "selected", "hidden", "open"]);

function apply(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    } else if (name === "style") {
      for (const [key, entry] of Object.entries(value)) element.style.setProperty(key, entry);
    } else if (PROPERTIES.has(name)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

function fill(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Make an HTML element. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  apply(element, attributes);
  fill(element, children);
  return element;
}

/** Make an SVG element. */
export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  apply(element, attributes);
  fill(element, children);
  return element;
}

/** Return the parts of a text; those between two backticks are code. A full stop ends the text. */
export function prose(text) {
  const whole = /[.!?]$/.test(text) ? text : `${text}.`;
  return whole.split("`").map((part, k) => (k % 2 ? h("code", {}, part) : part));
}

let made = 0;

/** Return an id that no other element has. */
export function newId(prefix) {
  made += 1;
  return `${prefix}-${made}`;
}

/** Replace all children of an element. */
export function replace(element, ...children) {
  element.replaceChildren();
  fill(element, children);
  return element;
}

/** Make several elements a single stop of the Tab key; the arrow keys move between them. */
export function roving(elements) {
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  elements.forEach((element, place) => {
    element.setAttribute("tabindex", place ? -1 : 0);
    element.addEventListener("keydown", (event) => {
      if (!(event.key in steps)) return;
      event.preventDefault();
      const next = elements[(place + steps[event.key] + elements.length) % elements.length];
      element.setAttribute("tabindex", -1);
      next.setAttribute("tabindex", 0);
      next.focus();
    });
  });
}

/** Return a function that runs at most once per animation frame. */
export function oncePerFrame(work) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      work();
    });
  };
}

/** Draw now, and again whenever the width of an element changes. */
export function drawByWidth(element, draw) {
  let drawn = 0;
  const redraw = oncePerFrame(() => {
    const width = Math.round(element.clientWidth);
    if (width && width !== drawn) {
      drawn = width;
      draw(width);
    }
  });
  new ResizeObserver(redraw).observe(element);
  drawn = Math.round(element.clientWidth) || 800;
  draw(drawn);
}
