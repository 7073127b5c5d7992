// Small tools for elements and for numbers in words.
const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

// Text always becomes text nodes: nothing that a server or a file says is ever read as HTML.
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const count = (number) => number.toLocaleString("en");
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

// A probability for people: never 0% or 100% where it is only close.
export function percent(share) {
  if (share === null || share === undefined) return "unknown";
  if (share > 0 && share < 0.001) return "< 0.1%";
  if (share < 1 && share > 0.999) return "> 99.9%";
  const digits = share > 0 && share < 1 && (share < 0.1 || share > 0.9) ? 1 : 0;
  return `${(100 * share).toFixed(digits)}%`;
}

export function decimal(number, digits = 3) {
  return number === null || number === undefined ? "unknown" : number.toFixed(digits).replace("-", "−");
}

export const signed = (number, digits = 2) => (number > 0 ? "+" : "") + decimal(number, digits);

// A horizontal bar. The CSP forbids style attributes in HTML, not setting the style of an element.
export function bar(share, kind = "") {
  const inner = el("span", { class: "bar-fill" });
  inner.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return el("span", { class: `bar ${kind}`, "aria-hidden": "true" }, inner);
}

// A named number with one phrase that says what it is: a text, or a list of texts and elements.
export function number(name, value, phrase, testid) {
  return el(
    "div",
    { class: "number", "data-testid": testid },
    el("span", { class: "number-name" }, name),
    el("span", { class: "number-value" }, value),
    el("span", { class: "hint" }, ...[phrase].flat()),
  );
}
