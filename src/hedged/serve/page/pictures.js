// Pictures of items. They need the key, so they are fetched and shown as blob URLs.
import { getPicture } from "./api.js";
import { el } from "./dom.js";

const MOST = 400; // pictures kept
const cache = new Map(); // id -> (promise of) a URL, or null where there is no picture; the last used is last
const waiting = new WeakMap(); // frame -> what to do once it is seen
let available = false;

// Long lists load only what is on screen.
const observer = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      waiting.get(target)?.();
    }
  },
  { rootMargin: "200px" },
);

export function setPictures(has) {
  available = has;
  for (const id of [...cache.keys()]) forget(id);
}

export const hasPictures = () => available;

// An item's picture, or a neutral tile with its id.
export function picture(id, alt = `Item ${id}`) {
  const frame = el("span", { class: "picture", title: id }, el("span", { class: "picture-id" }, id));
  if (available) {
    waiting.set(frame, () => show(frame, id, alt));
    observer.observe(frame);
  }
  return frame;
}

async function show(frame, id, alt) {
  const url = await load(id);
  if (url) frame.replaceChildren(el("img", { src: url, alt }));
}

function load(id) {
  const known = cache.has(id) ? cache.get(id) : fetchUrl(id);
  cache.delete(id);
  cache.set(id, known);
  if (cache.size > MOST) forget(cache.keys().next().value);
  return known;
}

async function fetchUrl(id) {
  try {
    const blob = await getPicture(id);
    return blob && URL.createObjectURL(blob);
  } catch (error) {
    if (error.status !== 404) cache.delete(id); // it may come the next time
    return null;
  }
}

// Does what removes items. Their pictures that are on the way are waited for first, and none is asked for meanwhile:
// the service no longer knows them.
export async function whileLeaving(ids, work) {
  const known = ids.map((id) => cache.get(id));
  ids.forEach((id) => cache.set(id, null));
  await Promise.all(known);
  try {
    await work();
  } finally {
    ids.forEach((id) => cache.delete(id));
    known.forEach(release);
  }
}

function forget(id) {
  release(cache.get(id));
  cache.delete(id);
}

async function release(known) {
  const url = await known;
  if (url) URL.revokeObjectURL(url);
}
