// The page: two photos in, a match probability out.
import * as ort from "./runtime/ort.wasm.min.mjs";
import { decide, logOdds } from "./match.js";
import { describe } from "./metadata.js";
import { pixels } from "./pixels.js";

ort.env.wasm.wasmPaths = new URL("./runtime/", import.meta.url).href;
ort.env.wasm.numThreads = 1; // more need headers that a plain web server does not send

const state = document.getElementById("state");
const answer = document.getElementById("answer");
const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const embedded = {};

async function load() {
  const bytes = new Uint8Array(await (await fetch("model.onnx")).arrayBuffer());
  const description = describe(bytes);
  if (description.input.kind !== "image") throw new Error(`this model takes ${description.input.kind}s, not images`);
  return { description, session: await ort.InferenceSession.create(bytes) };
}

async function embed({ description, session }, file) {
  const { shape } = description.input;
  const input = new ort.Tensor("float32", await pixels(file, description.input), [1, ...shape]);
  const found = await session.run({ input });
  const { components, dim } = description.embedding;
  const parts = (numbers) => Array.from({ length: components }, (_, c) => numbers.slice(c * dim, (c + 1) * dim));
  return {
    mean: parts(found.means.data),
    variance: parts(found.variances.data),
    eta: found.eta.data[0],
    novelty: found.novelty?.data[0],
  };
}

function show(rows) {
  answer.replaceChildren();
  for (const [name, value] of rows) {
    const [term, said] = [document.createElement("dt"), document.createElement("dd")];
    [term.textContent, said.textContent] = [name, value];
    answer.append(term, said);
  }
  answer.hidden = false;
}

function compare({ description }) {
  const { first, second } = embedded;
  const odds = logOdds(description.match_model, first, second);
  const rows = [["Match probability", sigmoid(odds).toFixed(4)]];
  if (description.calibration) {
    const { verdict, probability } = decide(description.calibration, odds);
    rows.push(["Calibrated", probability.toFixed(4)], ["Decision", verdict]);
  }
  rows.push(["Uncertainty η", `${first.eta.toFixed(4)}, ${second.eta.toFixed(4)}`]);
  if (first.novelty !== undefined) rows.push(["Novelty", `${first.novelty.toFixed(4)}, ${second.novelty.toFixed(4)}`]);
  show(rows);
}

async function take(model, name, file) {
  delete embedded[name];
  answer.hidden = true;
  try {
    embedded[name] = await embed(model, file);
    const shown = document.getElementById(`${name}-shown`);
    URL.revokeObjectURL(shown.src);
    shown.src = URL.createObjectURL(file);
    shown.alt = file.name;
    const ready = embedded.first && embedded.second;
    state.textContent = ready ? "Compared." : "Choose the other photo.";
    if (ready) compare(model);
  } catch (error) {
    state.textContent = `${file.name} cannot be used: ${error.message}`;
  }
}

try {
  const model = await load();
  state.textContent = "Choose two photos.";
  let last = Promise.resolve(); // one photo at a time, in the order they were chosen
  for (const name of ["first", "second"]) {
    const input = document.getElementById(name);
    const taken = () => { if (input.files.length) last = last.then(() => take(model, name, input.files[0])); };
    input.addEventListener("change", taken);
    taken();
  }
} catch (error) {
  state.textContent = `The model cannot be loaded: ${error.message}`;
}
