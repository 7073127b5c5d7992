// "Map": the gallery in two dimensions, each item with its uncertainty as an ellipse.
import { get } from "./api.js";
import { byId, count, decimal, el, percent } from "./dom.js";
import { picture } from "./pictures.js";
import { createCamera, createGrid, extent, median } from "./places.js";
import { createScene } from "./scene.js";

const LIMIT = 20000;
const REACH = 24; // pixels around the pointer in which an item is picked
const STEP = 60; // pixels that an arrow key moves
const FRAME = 14; // milliseconds that a frame may take; ellipses that do not fit into one are drawn in the next
const LONGER = 4; // so many times as long as that, once nothing moves
const LEAST = 1e5; // pixels of ellipses in a frame
const MOST = 1e9;
const LAYERS = 200; // ellipses over each other, on average; of more, a fair sample is drawn, and all dots
const HOVER = 80; // milliseconds that the pointer stays before an item is shown
const ALL = -2; // instead of the index of a label

// Okabe and Ito's colours that are told apart with any colour vision, without those too light or dark for a background;
// then grey.
const PALETTE = ["#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7", "#8a8f99"];
const NO_LABEL = PALETTE.length - 1;

window.hedgedMap = { frames: 0, items: 0, whole: false }; // for tests

export function createMap() {
  const canvas = byId("map-canvas");
  const camera = createCamera();
  const pointers = new Map(); // those that are down, by id
  let map = null;
  let scene = null;
  let nearest = null;
  let picked = -1;
  let fitted = true; // all of it is in view, and stays so when the size changes
  let kept = false; // a click keeps an item until the next click
  let chosen = ALL;
  let waiting = 0; // the frame that was asked for
  let time = FRAME; // that this frame may take
  let drawing = false; // the graphics card has not finished the last frame
  let last = 0; // ellipses of this picture
  let drawn = 0; // those that are drawn already
  let strength = 0; // their opacity
  let budget = 10 * LEAST; // pixels of ellipses in a frame, as many as FRAME allows
  let hoverTimer = 0;

  async function load() {
    say("Loading the map …");
    try {
      map = prepare(await get("/v1/map", { limit: LIMIT }));
    } catch (error) {
      say("The map did not load.");
      throw error;
    }
    window.hedgedMap.items = map.ids.length;
    nearest = createGrid(map.x, map.y);
    byId("map-note").textContent = note(map);
    byId("map-labels").replaceChildren(...map.labels.map((label) => el("option", { value: label })));
    byId("map-legend").replaceChildren(...legend(map));
    kept = false;
    pick(-1);
    start();
    chooseLabel();
    showAll();
  }

  function start() {
    scene = createScene(canvas, map, PALETTE.map(rgb));
    if (!scene) say("This browser has no WebGL 2, so the map cannot be drawn. The other views work without it.");
    else if (!map.ids.length) say("The gallery is empty.");
    else say("");
  }

  function say(message) {
    byId("map-message").textContent = message;
    byId("map-message").hidden = message === "";
  }

  function fitSize() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    camera.width = canvas.clientWidth;
    camera.height = canvas.clientHeight;
    const [width, height] = [Math.round(camera.width * ratio), Math.round(camera.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    return ratio;
  }

  // Frames are drawn on change only.
  function redraw() {
    drawn = 0;
    window.hedgedMap.whole = false;
    next();
  }

  function next() {
    if (!drawing) waiting ||= requestAnimationFrame(draw);
  }

  function draw() {
    waiting = 0;
    if (!scene || !canvas.clientWidth) return;
    const ratio = fitSize();
    if (drawn === 0) plan();
    time = drawn === 0 ? FRAME : LONGER * FRAME;
    const { to } = scene.within(camera, chosen, drawn, ((time / FRAME) * budget) / ratio ** 2);
    scene.draw(camera, ratio, chosen, strength, drawn, Math.min(to, last));
    drawn = Math.min(to, last);
    drawing = true;
    scene.whenDrawn(finish);
    window.hedgedMap.frames++;
    mark();
  }

  // Which ellipses are drawn in this picture, and how strongly.
  function plan() {
    const area = camera.width * camera.height;
    const all = scene.within(camera, chosen, 0, LAYERS * area);
    last = all.to;
    strength = opacity(all.covered / area);
  }

  function finish(taken) {
    drawing = false;
    if (taken > time) budget = Math.max(LEAST, budget * Math.max(0.25, time / taken));
    else if (taken < time / 2 && drawn < last) budget = Math.min(MOST, 2 * budget);
    if (drawn < last) next();
    window.hedgedMap.whole = drawn === last;
  }

  function moved() {
    fitted = false;
    redraw();
  }

  function showAll() {
    if (!map || !canvas.clientWidth) return;
    fitSize();
    camera.fit(extent(map.x), extent(map.y), 2 * median(map.major));
    fitted = true;
    redraw();
  }

  function zoom(factor, left = camera.width / 2, top = camera.height / 2) {
    camera.zoomAt(left, top, factor);
    moved();
  }

  function pan(right, down) {
    camera.pan(right, down);
    moved();
  }

  // The ellipse of the picked item, on top of all others.
  function mark() {
    const svg = byId("map-mark");
    svg.toggleAttribute("hidden", picked < 0);
    if (picked < 0) return;
    const [left, top] = camera.toScreen(map.x[picked], map.y[picked]);
    const turn = (-map.angle[picked] * 180) / Math.PI;
    const ellipse = svg.querySelector("ellipse");
    ellipse.setAttribute("rx", map.major[picked] * camera.zoom);
    ellipse.setAttribute("ry", map.minor[picked] * camera.zoom);
    for (const shape of svg.children) shape.setAttribute("transform", `translate(${left} ${top}) rotate(${turn})`);
  }

  function at(left, top, reach = REACH) {
    if (!nearest) return -1;
    const allowed = (i) => chosen === ALL || map.label[i] === chosen;
    return nearest(...camera.toData(left, top), reach / camera.zoom, allowed);
  }

  function pick(item) {
    picked = item;
    mark();
    byId("map-picked").replaceChildren(...(item < 0 ? [hint()] : details(map, item)));
  }

  function keep(item) {
    clearTimeout(hoverTimer);
    kept = item >= 0;
    pick(item);
  }

  function hover(left, top) {
    canvas.classList.toggle("over-item", at(left, top) >= 0);
    clearTimeout(hoverTimer);
    if (kept) return;
    hoverTimer = setTimeout(() => {
      const item = at(left, top);
      if (item !== picked && item >= 0) pick(item);
    }, HOVER);
  }

  function chooseLabel() {
    const typed = byId("map-label").value;
    const place = map ? map.labels.indexOf(typed) : -1;
    chosen = place < 0 ? ALL : place;
    redraw();
  }

  function handlePointers() {
    let travelled = 0;
    const position = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const centre = () => {
      const all = [...pointers.values()];
      const [x, y] = [0, 1].map((axis) => all.reduce((sum, each) => sum + each[axis], 0) / all.length);
      const apart = all.length > 1 ? Math.hypot(all[0][0] - all[1][0], all[0][1] - all[1][1]) : 0;
      return { x, y, apart };
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      if (!pointers.size) travelled = 0;
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, position(event));
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!pointers.has(event.pointerId)) {
        hover(...position(event));
        return;
      }
      const before = centre();
      pointers.set(event.pointerId, position(event));
      const after = centre();
      travelled += Math.hypot(after.x - before.x, after.y - before.y) + Math.abs(after.apart - before.apart);
      pan(after.x - before.x, after.y - before.y);
      if (before.apart && after.apart) zoom(after.apart / before.apart, after.x, after.y);
    });
    const lift = (event) => {
      const wasDown = pointers.delete(event.pointerId);
      if (wasDown && event.type === "pointerup" && !pointers.size && travelled < 5) keep(at(...position(event)));
    };
    canvas.addEventListener("pointerup", lift);
    canvas.addEventListener("pointercancel", lift);
    canvas.addEventListener("pointerleave", () => clearTimeout(hoverTimer));
    const turn = (event) => {
      event.preventDefault();
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
      zoom(Math.exp(-Math.max(-200, Math.min(200, event.deltaY * lines)) / 300), ...position(event));
    };
    canvas.addEventListener("wheel", turn, { passive: false });
  }

  function handleKeys() {
    const keys = {
      "+": () => zoom(1.4),
      "=": () => zoom(1.4),
      "-": () => zoom(1 / 1.4),
      0: showAll,
      ArrowLeft: () => pan(STEP, 0),
      ArrowRight: () => pan(-STEP, 0),
      ArrowUp: () => pan(0, STEP),
      ArrowDown: () => pan(0, -STEP),
      Enter: () => keep(at(camera.width / 2, camera.height / 2, Math.max(camera.width, camera.height))),
      Escape: () => keep(-1),
    };
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
      event.preventDefault();
      keys[event.key]();
    });
    byId("map-in").addEventListener("click", () => zoom(1.6));
    byId("map-out").addEventListener("click", () => zoom(1 / 1.6));
    byId("map-all").addEventListener("click", showAll);
  }

  // A graphics card may be taken away and given back.
  function handleLoss() {
    canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      scene = null;
    });
    canvas.addEventListener("webglcontextrestored", () => {
      start();
      redraw();
    });
  }

  handlePointers();
  handleKeys();
  handleLoss();
  byId("map-label").addEventListener("input", chooseLabel);
  new ResizeObserver(() => (fitted ? showAll() : redraw())).observe(canvas);
  pick(-1);
  return { load };
}

function prepare(answer) {
  return { ...answer, colour: answer.label.map((label) => (label < 0 ? NO_LABEL : label % NO_LABEL)) };
}

function note({ explained, total, ids }) {
  const shown = ids.length < total ? `${count(ids.length)} of ${count(total)} items` : `${count(total)} items`;
  return `${shown}. The two directions shown hold ${percent(explained)} of the variance.`;
}

function details(map, item) {
  const label = map.labels[map.label[item]];
  return [
    picture(map.ids[item]),
    el("p", { class: "item-label" }, label ?? "No label"),
    el("p", { class: "item-id" }, map.ids[item]),
    el("p", {}, `η ${decimal(map.uncertainty[item])}`),
  ];
}

// Where there are more labels than colours, colours only tell neighbours apart.
function legend({ labels, label }) {
  if (labels.length > NO_LABEL) return [];
  const names = label.includes(-1) ? [...labels, "No label"] : labels;
  return names.map((name, place) => {
    const swatch = el("i", { class: "swatch" });
    swatch.style.background = PALETTE[name === labels[place] ? place : NO_LABEL];
    return el("li", {}, swatch, " ", name);
  });
}

// The more ellipses lie over each other, the fainter.
const opacity = (layers) => Math.min(0.3, Math.max(0.015, 1.2 / (1 + layers)));

const hint = () => el("p", { class: "hint" }, "Point at an item to see it.");

function rgb(hex) {
  return [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16) / 255);
}
