// Calls of the service. Every failure becomes an ApiError whose message can be shown as it is.
const STORED = "hedged-key";
let key = "";
let refused = () => {};

export class ApiError extends Error {
  constructor(status, message, after = 0) {
    super(message);
    this.status = status;
    this.after = after; // seconds after which it may be tried again; 0 if the service says nothing of it
  }
}

// The key of the link, which then leaves the address bar, or that of this tab.
export function findKey() {
  const found = /(?:^#|&)key=([^&]*)/.exec(location.hash);
  if (found) {
    setKey(decoded(found[1]));
    history.replaceState(null, "", location.pathname + location.search);
  } else {
    key = sessionStorage.getItem(STORED) ?? "";
  }
  return key !== "";
}

export function setKey(value) {
  key = value.trim();
  if (key) sessionStorage.setItem(STORED, key);
  else sessionStorage.removeItem(STORED);
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a bare % in a key
  }
}

export function onRefused(callback) {
  refused = callback;
}

async function send(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: { ...options.headers, Authorization: `Bearer ${key}` } });
  } catch {
    throw new ApiError(0, "The service does not answer. Is `hedged serve` still running?");
  }
  if (response.ok) return response;
  const error = new ApiError(response.status, await words(response), Number(response.headers.get("Retry-After")));
  if (response.status === 401) refused(error);
  throw error;
}

async function words(response) {
  try {
    const { error } = await response.json();
    if (typeof error === "string") return error;
  } catch {
    // No JSON, for example from a proxy: the status has to do.
  }
  return `The service answered ${response.status} ${response.statusText}`.trim() + ".";
}

export async function get(path, query = {}) {
  return (await send(withQuery(path, query))).json();
}

export async function remove(path, query) {
  return (await send(withQuery(path, query), { method: "DELETE" })).json();
}

export async function post(path, content, query = {}) {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content) };
  return (await send(withQuery(path, query), options)).json();
}

// Inputs are photos (files) or vectors (lists of numbers); `each` holds lists with one entry per input.
export async function postInputs(path, inputs, query = {}, each = {}) {
  if (!(inputs[0] instanceof Blob)) return post(path, { vectors: inputs, ...each }, query);
  const body = new FormData();
  inputs.forEach((file) => body.append("files", file));
  for (const [name, values] of Object.entries(each)) values.forEach((value) => body.append(name, value));
  return (await send(withQuery(path, query), { method: "POST", body })).json();
}

export async function getPicture(id) {
  const response = await send(withQuery("/v1/items/picture", { id }));
  return response.status === 204 ? null : response.blob();
}

function withQuery(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}
