// "Do they match?": two inputs, the probability that they match, and why.
import { postInputs } from "./api.js";
import { byId, decimal, el, number, percent, plural, signed } from "./dom.js";
import { createInput } from "./input.js";
import { novelty, uncertainty } from "./who.js";

const SHOWN = 12; // dimensions in the chart
const DECISIONS = {
  accept: "Match",
  reject: "No match",
  abstain: "Undecided",
  same: "Match",
  different: "No match",
  unsure: "Undecided",
};

export function createPair(app) {
  const inputs = [null, null];
  let asked = 0; // a late answer to an earlier pair is dropped

  async function compare() {
    if (inputs.includes(null)) return;
    const mine = ++asked;
    byId("view-pair").setAttribute("aria-busy", "true");
    try {
      const answer = await postInputs("/v1/match", inputs);
      if (mine !== asked) return;
      app.tell("");
      showAnswer(answer);
    } catch (error) {
      if (mine === asked) clearAnswer();
      app.fail(error);
    } finally {
      if (mine === asked) byId("view-pair").removeAttribute("aria-busy");
    }
  }

  const noun = app.model.input.kind === "images" ? "photo" : "vector";
  ["a", "b"].forEach((side, place) =>
    createInput(byId(`pair-input-${side}`), {
      name: `pair-${side}`,
      title: place ? `Second ${noun}` : `First ${noun}`,
      testid: `pair-file-${side}`,
      model: app.model,
      failed: app.fail,
      given(input) {
        inputs[place] = input;
        compare();
      },
    }),
  );
  clearAnswer();
  return {};
}

function clearAnswer() {
  byId("pair-answer").textContent = "";
  byId("pair-decision").textContent = "";
  byId("pair-result").replaceChildren(el("p", { class: "hint" }, "The answer comes here once there are two."));
}

function showAnswer(answer) {
  const { calibrated } = answer;
  byId("pair-answer").textContent =
    `${DECISIONS[answer.decision] ?? answer.decision}: ${percent((calibrated ?? answer).probability)}`;
  byId("pair-decision").textContent = `Decision: ${answer.decision} (${answer.rule}).`;
  byId("pair-result").replaceChildren(probabilityNote(answer), numbers(answer), why(answer));
}

function probabilityNote({ calibrated, probability, log_odds: logOdds }) {
  const model = `${percent(probability)}, log-odds ${signed(logOdds)}`;
  const words = calibrated
    ? `The probability is calibrated for a base rate of ${percent(calibrated.base_rate)}. The model itself says ${model}.`
    : `The probability is the model’s own (${model}). Run hedged calibrate RUN to calibrate it.`;
  return el("p", { class: "hint" }, words);
}

function numbers(answer) {
  const [eta1, eta2] = answer.uncertainty;
  const [novel1, novel2] = answer.novelty;
  const novelties =
    novel1 === null
      ? [novelty("Novelty of both", null)]
      : [novelty("Novelty of the first", novel1), novelty("Novelty of the second", novel2)];
  return el(
    "div",
    { class: "numbers" },
    uncertainty("η of the first", eta1),
    uncertainty("η of the second", eta2),
    ...novelties,
    number("Distance", decimal(answer.distance), "Between the two means.", "distance"),
  );
}

function why({ dimensions, log_odds: logOdds }) {
  return dimensions.some((one) => one.log_odds !== null) ? evidence(dimensions, logOdds) : differences(dimensions);
}

const strongest = (rows) => [...rows].sort((one, other) => Math.abs(other.value) - Math.abs(one.value));

function evidence(dimensions, logOdds) {
  const rows = strongest(dimensions.map((one) => ({ name: one.dimension, value: one.log_odds ?? 0 })));
  const sum = (some) => some.reduce((total, one) => total + one.value, 0);
  const rest = rows.slice(SHOWN);
  const sums = [
    { name: `${plural(rest.length, "other dimension")} together`, value: sum(rest) },
    { name: "What belongs to no dimension", value: logOdds - sum(rows) },
    { name: "Log-odds of a match", value: logOdds },
  ].slice(rest.length ? 0 : 1);
  const text = "Evidence of each dimension, in log-odds: right speaks for a match, left against it.";
  return chart(text, "log-odds", rows.slice(0, SHOWN), sums);
}

function differences(dimensions) {
  const rows = dimensions.map((one) => ({ name: one.dimension, value: one.difference / (one.spread || 1) }));
  const text =
    "The match model has no evidence by dimension. These are the differences of the means, in units of their spread.";
  return chart(text, "spreads", strongest(rows).slice(0, SHOWN));
}

// A table with bars, so that what they show can be read as well; sums have none.
function chart(text, unit, rows, sums = []) {
  const most = Math.max(...rows.map((row) => Math.abs(row.value))) || 1;
  const lines = rows.map(({ name, value }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, String(name)),
      el("td", {}, sideBar(value / most, unit === "log-odds")),
      el("td", { class: "value" }, signed(value)),
    ),
  );
  const totals = sums.map(({ name, value }) =>
    el("tr", {}, el("th", { scope: "row", colspan: 2 }, name), el("td", { class: "value" }, signed(value))),
  );
  const columns = ["Dimension", "", unit].map((name) => (name ? el("th", { scope: "col" }, name) : el("td")));
  return el(
    "div",
    { class: "why", "data-testid": "pair-why" },
    el("h3", {}, "Why"),
    el("p", { class: "hint" }, text),
    el("table", {}, el("thead", {}, el("tr", {}, ...columns)), el("tbody", {}, ...lines), el("tfoot", {}, ...totals)),
  );
}

// A bar from the middle, to the right if positive.
function sideBar(share, speaks) {
  const kind = speaks ? (share < 0 ? "against" : "for") : "plain";
  const inner = el("span", { class: `side-fill ${kind}` });
  inner.style.width = `${Math.abs(share) * 50}%`;
  inner.style.left = share < 0 ? `${50 - Math.abs(share) * 50}%` : "50%";
  return el("span", { class: "side", "aria-hidden": "true" }, inner);
}
