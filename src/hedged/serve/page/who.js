// "Who is it?": identify one input, show what speaks for whom, and enrol it.
import { postInputs } from "./api.js";
import { bar, byId, decimal, el, number, percent, plural } from "./dom.js";
import { createInput } from "./input.js";
import { hasPictures, picture } from "./pictures.js";

const LIKELY = 0.5; // below it, all others together are likelier than the answer
const DECISIONS = {
  accept: "Decision: accept the best label, by the thresholds of the calibration.",
  reject: "Decision: reject the best label, by the thresholds of the calibration.",
  abstain: "Decision: abstain, the best label is neither accepted nor rejected.",
};

export function createWho(app) {
  const none = byId("who-none");
  let probe = null;
  let asked = 0; // a late answer to an earlier photo is dropped

  async function identify() {
    if (!probe || !none.reportValidity()) return;
    const mine = ++asked;
    byId("view-who").setAttribute("aria-busy", "true");
    try {
      const query = { top: 5, none: none.value };
      const { results } = await postInputs("/v1/identify", [probe.input], query);
      if (mine !== asked) return;
      app.tell("");
      showAnswer(results[0], probe);
      offer();
    } catch (error) {
      if (mine === asked) clearAnswer();
      if (mine === asked && !app.model.labels) offer(); // the first one cannot be identified
      app.fail(error);
    } finally {
      if (mine === asked) byId("view-who").removeAttribute("aria-busy");
    }
  }

  function offer() {
    byId("enrol").hidden = app.model.role !== "write";
  }

  async function enrol(event) {
    event.preventDefault();
    const label = byId("enrol-label").value.trim();
    const id = byId("enrol-id").value.trim();
    if (!label || !probe) return;
    byId("enrol-warnings").replaceChildren();
    try {
      const each = { labels: [label], ...(id ? { ids: [id] } : {}) };
      const { ids, warnings } = await postInputs("/v1/items", [probe.input], {}, each);
      byId("enrol-warnings").append(...warnings.map((warning) => el("li", {}, warning)));
      app.tell(`Enrolled ${ids.join(", ")} as “${label}”.`);
      byId("enrol-id").value = "";
      await app.changed();
    } catch (error) {
      app.fail(error);
    }
  }

  createInput(byId("who-input"), {
    name: "who-probe",
    title: app.model.input.kind === "images" ? "Photo" : "Vector",
    testid: "who-file",
    model: app.model,
    failed: app.fail,
    given(input, url) {
      probe = { input, url };
      byId("enrol").hidden = true;
      byId("enrol-warnings").replaceChildren();
      identify();
    },
  });
  none.addEventListener("change", identify);
  byId("enrol").addEventListener("submit", enrol);
  clearAnswer();
  return {};
}

function clearAnswer() {
  byId("who-answer").textContent = "";
  byId("who-decision").textContent = "";
  byId("who-result").replaceChildren(el("p", { class: "hint" }, "The answer comes here."));
}

function showAnswer(result, probe) {
  const name = result.label ?? "Nobody in this gallery";
  const isClear = result.probability >= LIKELY;
  byId("who-answer").textContent = isClear ? name : "Not clear";
  const sure = `${isClear ? "With" : `The likeliest is “${name}”, with`} a probability of ${percent(result.probability)}.`;
  const decision = result.decision ? ` ${DECISIONS[result.decision] ?? `Decision: ${result.decision}.`}` : "";
  byId("who-decision").textContent = sure + decision;
  byId("who-result").replaceChildren(
    comparison(result, probe),
    chances(result),
    ...candidates(result.candidates),
    numbers(result),
  );
}

// The probe beside the items of the best label.
function comparison({ best }, probe) {
  if (!best.length || !probe.url) return el("div");
  const [first] = best;
  return el(
    "div",
    { class: "beside" },
    el("figure", {}, el("span", { class: "picture" }, el("img", { src: probe.url, alt: "Your photo" })), caption("Yours")),
    ...first.items.map((id) => el("figure", {}, picture(id, `${first.label}, item ${id}`), caption(first.label))),
  );
}

const caption = (text) => el("figcaption", {}, text);

function chances({ best, none_probability: nobody }) {
  const named = best.map((one) => chance(one.label, one.probability, plural(one.images, "item"), one.items));
  const rest = 1 - nobody - best.reduce((sum, one) => sum + one.probability, 0);
  const others = rest > 0.0005 ? [chance("Anybody else in the gallery", rest, "")] : [];
  const rows = [...named, ...others, chance("Nobody", nobody, "not in this gallery", [], "nobody")];
  return el("ul", { class: "chances", "data-testid": "who-bars" }, ...rows);
}

function chance(name, probability, detail, ids = [], kind = "") {
  return el(
    "li",
    {},
    el("span", { class: "chance-name" }, name, " ", el("span", { class: "hint" }, detail)),
    el("span", { class: "chance-items" }, ...(hasPictures() ? ids : []).map((id) => picture(id))),
    bar(probability, kind),
    el("span", { class: "chance-value" }, percent(probability)),
  );
}

function candidates(set) {
  if (!set) return [];
  const all = [...set.labels, ...(set.nobody ? ["nobody"] : [])].join(", ");
  return [el("p", {}, `With a coverage of ${percent(set.coverage)} it is one of: ${all || "none of these"}.`)];
}

function numbers(result) {
  return el(
    "div",
    { class: "numbers" },
    uncertainty("η, uncertainty", result.uncertainty),
    novelty("Novelty", result.novelty),
    number("P(nobody)", percent(result.none_probability), "That it shows none of the labels in this gallery.", "who-nobody"),
  );
}

export const uncertainty = (name, value) =>
  number(name, decimal(value), "Could it be several things? High for poor inputs.", "eta");

export function novelty(name, value) {
  const known = value !== null && value !== undefined;
  const phrase = known ? "Share of held-out training inputs that are less novel." : ["Fit it with ", el("code", {}, "hedged novelty RUN"), "."];
  return number(name, known ? percent(value) : "unknown", phrase, "novelty");
}

