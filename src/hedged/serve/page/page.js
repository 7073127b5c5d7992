// The page as a whole: key, tabs, messages, and what is served.
import { findKey, get, onRefused, setKey } from "./api.js";
import { createAudit } from "./audit.js";
import { byId, plural } from "./dom.js";
import { createMap } from "./map.js";
import { createPair } from "./pair.js";
import { setPictures } from "./pictures.js";
import { createThreshold } from "./threshold.js";
import { createUncertain } from "./uncertain.js";
import { createWho } from "./who.js";

const VIEWS = {
  who: createWho,
  pair: createPair,
  map: createMap,
  uncertain: createUncertain,
  audit: createAudit,
  threshold: createThreshold,
};
const names = Object.keys(VIEWS);
const tab = (name) => byId(`tab-${name}`);
const views = {};
const stale = new Set(); // views that load anew when they are next shown
let current = "who";

const app = { model: null, tell, fail, confirm, changed, load };

function tell(message, isError = false) {
  const status = byId("status");
  status.textContent = message;
  status.parentElement.classList.toggle("error", isError);
  status.parentElement.classList.toggle("shown", message !== "");
  byId("status-close").hidden = message === "";
}

function fail(error) {
  tell(error.message, true);
}

let confirmed = 0; // how often it was asked

function confirm(title, text, yes) {
  const dialog = byId("confirm");
  const mine = ++confirmed;
  byId("confirm-title").textContent = title;
  byId("confirm-text").textContent = text;
  byId("confirm-yes").textContent = yes;
  dialog.returnValue = "no"; // Escape leaves it so
  dialog.showModal();
  return new Promise((answer) => {
    function closed() {
      if (mine === confirmed && dialog.open) return; // it comes late, of the question before
      dialog.removeEventListener("close", closed);
      answer(mine === confirmed && dialog.returnValue === "yes");
    }
    dialog.addEventListener("close", closed);
  });
}

// The gallery is no longer what the other views show.
async function changed(except = current) {
  for (const name of ["map", "uncertain", "audit"]) if (name !== except) stale.add(name);
  app.model = await get("/v1/model");
  showSummary();
}

function showSummary() {
  const { name, items, labels } = app.model;
  byId("summary").textContent = `${name} · ${plural(items, "item")} · ${plural(labels, "label")}`;
}

function show(name) {
  current = name;
  for (const each of names) {
    const chosen = each === name;
    tab(each).setAttribute("aria-selected", String(chosen));
    tab(each).tabIndex = chosen ? 0 : -1;
    byId(`view-${each}`).hidden = !chosen;
  }
  history.replaceState(null, "", `#${name}`); // a reload stays here
  tab(name).scrollIntoView({ block: "nearest", inline: "nearest" });
  if (stale.delete(name)) load(name);
}

async function load(name) {
  try {
    await views[name].load?.();
  } catch (error) {
    stale.add(name);
    fail(error);
  }
}

function choose(name) {
  tell("");
  show(name);
}

function moveTab(event) {
  const place = names.indexOf(current);
  const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: names.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const name = names[(to + names.length) % names.length];
  choose(name);
  tab(name).focus();
}

function askForKey() {
  setKey("");
  byId("views").hidden = true;
  byId("change-key").hidden = true;
  byId("summary").textContent = "";
  byId("key-form").hidden = false;
  byId("key").value = "";
  byId("key").focus();
}

async function open() {
  try {
    const model = await get("/v1/model");
    if (app.model) {
      location.reload(); // another key, perhaps with another role: start afresh
      return;
    }
    app.model = model;
  } catch (error) {
    fail(error);
    if (error.status !== 401) byId("key-form").hidden = false;
    return;
  }
  tell("");
  byId("key-form").hidden = true;
  byId("views").hidden = false;
  byId("change-key").hidden = false;
  document.title = `${app.model.name} · hedged`;
  showSummary();
  setPictures(app.model.pictures);
  for (const name of names) {
    views[name] = VIEWS[name](app);
    stale.add(name);
  }
  show(current);
}

function start() {
  const wanted = location.hash.slice(1);
  if (names.includes(wanted)) current = wanted;
  onRefused((error) => {
    askForKey();
    fail(error);
  });
  byId("status-close").addEventListener("click", () => tell(""));
  byId("change-key").addEventListener("click", () => {
    tell("");
    askForKey();
  });
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    setKey(byId("key").value);
    open();
  });
  for (const name of names) tab(name).addEventListener("click", () => choose(name));
  tab("who").parentElement.addEventListener("keydown", moveTab);
  // A photo that misses its place must not replace the page.
  for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());
  window.addEventListener("hashchange", () => findKeyInLink());
  if (findKey()) open();
  else askForKey();
}

// A link with a key that is opened in this tab.
function findKeyInLink() {
  if (location.hash.includes("key=") && findKey()) open();
}

start();
