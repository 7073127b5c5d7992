// One input of the model: a photo that is dropped or chosen, or a vector that is typed.
import { el } from "./dom.js";

// Calls `given(input, url)` with a File and its blob URL, or with a list of numbers and null.
export function createInput(place, { name, title, testid, model, given, failed }) {
  const create = model.input.kind === "images" ? photoInput : vectorInput;
  place.replaceChildren(create({ name, title, testid, length: model.input.length, given, failed }));
}

function photoInput({ name, title, testid, given, failed }) {
  const file = el("input", { id: name, type: "file", accept: "image/*", class: "hidden-input", "data-testid": testid });
  const preview = el("span", { class: "drop-preview" });
  const caption = el("span", { class: "drop-caption" }, "Drop a photo or choose one");
  const zone = el("label", { class: "drop", for: name }, preview, el("span", { class: "drop-title" }, title), caption);
  let url = null;

  function take(photo) {
    if (!photo) return;
    if (!photo.type.startsWith("image/")) {
      failed(new Error(`${photo.name} is no picture. Choose a JPEG or PNG.`));
      return;
    }
    if (url) URL.revokeObjectURL(url);
    url = URL.createObjectURL(photo);
    const shown = el("img", { src: url, alt: "" });
    shown.addEventListener("error", () => preview.replaceChildren()); // the service will say what is wrong with it
    preview.replaceChildren(shown);
    caption.textContent = photo.name;
    given(photo, url);
  }

  file.addEventListener("change", () => {
    take(file.files[0]);
    file.value = ""; // so that the same file can be chosen again
  });
  takeDrops(zone, take);
  return el("div", { class: "drop-holder" }, file, zone);
}

function takeDrops(zone, take) {
  const over = (event) => {
    event.preventDefault();
    zone.classList.add("over");
  };
  zone.addEventListener("dragenter", over);
  zone.addEventListener("dragover", over);
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });
}

function vectorInput({ name, title, testid, length, given, failed }) {
  const vectorId = testid.replace("file", "vector");
  const text = el("textarea", { id: name, rows: 6, spellcheck: "false", "data-testid": vectorId });
  const button = el("button", { type: "submit", "data-testid": `${vectorId}-button` }, "Use it");

  function take(event) {
    event.preventDefault();
    try {
      const vector = readVector(text.value, length);
      text.removeAttribute("aria-invalid");
      given(vector, null);
    } catch (error) {
      text.setAttribute("aria-invalid", "true");
      failed(error);
    }
  }

  const label = el("label", { for: name }, `${title}: ${length} numbers with commas between`);
  return el("form", { class: "vector", onsubmit: take }, label, text, button);
}

export function readVector(text, length) {
  const parts = text.replace(/[[\]]/g, " ").split(/[\s,;]+/).filter(Boolean);
  const wrong = parts.find((part) => !Number.isFinite(Number(part)));
  if (wrong !== undefined) throw new Error(`“${wrong}” is not a number.`);
  if (parts.length !== length) throw new Error(`The model takes ${length} numbers, got ${parts.length}.`);
  return parts.map(Number);
}
