// "Threshold": what a threshold and a band of abstention would do to the pairs of the calibration.
import { get } from "./api.js";
import { byId, count, decimal, el, number, percent, svg } from "./dom.js";

const HEIGHT = 220;
const MARGIN = { top: 12, bottom: 28, side: 12 };
const EDGE = Math.log(0.9995 / 0.0005); // log-odds at both ends of the axis
const BINS = 60;
const TICKS = [0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999];

export function createThreshold() {
  const slider = byId("threshold-slider");
  const band = byId("threshold-band");
  const chart = byId("threshold-chart");
  let pairs = null;

  async function load() {
    const calibration = await get("/v1/calibration");
    byId("threshold-body").hidden = !calibration?.scores;
    byId("threshold-note").replaceChildren(...note(calibration));
    if (!calibration?.scores) return;
    pairs = prepare(calibration);
    reset();
  }

  function reset() {
    const { reject, accept } = pairs;
    slider.value = (reject + accept) / 2;
    band.value = accept - reject;
    update();
  }

  function update() {
    if (!pairs) return;
    const threshold = Number(slider.value);
    const width = Number(band.value);
    const limits = { reject: Math.max(0, threshold - width / 2), accept: Math.min(1, threshold + width / 2) };
    byId("threshold-value").textContent = decimal(threshold);
    byId("threshold-width").textContent = decimal(width);
    byId("threshold-rule").textContent = rule(limits);
    byId("threshold-numbers").replaceChildren(...numbers(rates(pairs, limits), pairs.baseRate));
    if (chart.clientWidth) chart.replaceChildren(draw(pairs, threshold, limits, chart.clientWidth)); // else not in view
  }

  slider.addEventListener("input", update);
  band.addEventListener("input", update);
  byId("threshold-reset").addEventListener("click", reset);
  new ResizeObserver(update).observe(chart);
  return { load };
}

function note(calibration) {
  if (calibration === null) {
    return ["This model is not calibrated. Run ", el("code", {}, "hedged calibrate RUN"), " and start the service again."];
  }
  if (calibration.scores === null) {
    return ["The calibration was written without its pairs. Run ", el("code", {}, "hedged calibrate RUN"), " again."];
  }
  return [
    `Calibrated probabilities of held-out pairs, for a base rate of ${percent(calibration.base_rate)}. The sliders change `,
    "nothing in the service: it decides by the thresholds of ",
    el("code", {}, "hedged calibrate"),
    ".",
  ];
}

function prepare(calibration) {
  return {
    match: calibration.calibrated.match,
    other: calibration.calibrated.non_match,
    baseRate: calibration.base_rate,
    reject: calibration.reject_below_probability,
    accept: calibration.accept_from_probability,
  };
}

function rule({ reject, accept }) {
  const first = `Match from ${decimal(accept)}, no match below ${decimal(reject)}`;
  return accept > reject ? `${first}, abstains between.` : `${first}.`;
}

function rates({ match, other, baseRate }, { reject, accept }) {
  const those = (list, test) => {
    const found = list.filter(test).length;
    return { share: list.length ? found / list.length : 0, words: `${count(found)} of ${count(list.length)}` };
  };
  const unsure = (probability) => probability >= reject && probability < accept;
  const [ofMatch, ofOther] = [those(match, unsure), those(other, unsure)];
  return {
    falseMatch: those(other, (probability) => probability >= accept),
    miss: those(match, (probability) => probability < reject),
    abstain: baseRate * ofMatch.share + (1 - baseRate) * ofOther.share,
    parts: `${percent(ofMatch.share)} of matches, ${percent(ofOther.share)} of others`,
  };
}

function numbers({ falseMatch, miss, abstain, parts }, baseRate) {
  const wrong = `Pairs that do not match, taken for a match: ${falseMatch.words}.`;
  const missed = `Pairs that match, taken for no match: ${miss.words}.`;
  const both = `Of all pairs at a base rate of ${percent(baseRate)}: ${parts}.`;
  return [
    number("False match rate", percent(falseMatch.share), wrong, "false-match-rate"),
    number("Miss rate", percent(miss.share), missed, "miss-rate"),
    number("Abstentions", percent(abstain), both, "abstentions"),
  ];
}

// The axis is stretched at both ends, where most pairs of a good model lie.
const logOdds = (probability) => {
  const safe = Math.min(0.9995, Math.max(0.0005, probability));
  return Math.log(safe / (1 - safe));
};

function draw({ match, other }, threshold, limits, width) {
  const across = (probability) =>
    MARGIN.side + ((logOdds(probability) + EDGE) / (2 * EDGE)) * (width - 2 * MARGIN.side);
  const floor = HEIGHT - MARGIN.bottom;
  const [first, second] = [histogram(match), histogram(other)];
  const most = Math.max(...first, ...second) || 1;
  const area = (bins, kind) => svg("path", { class: `area ${kind}`, d: outline(bins, most, width) });
  const from = across(limits.reject);
  const line = { class: "line", x1: across(threshold), x2: across(threshold), y1: MARGIN.top - 8, y2: floor };
  return svg(
    "svg",
    { width, height: HEIGHT, role: "img", "aria-label": "Probabilities of pairs that match and of pairs that do not" },
    svg("rect", { class: "band", x: from, width: across(limits.accept) - from, y: MARGIN.top, height: floor - MARGIN.top }),
    area(second, "other"),
    area(first, "match"),
    svg("line", { class: "axis", x1: MARGIN.side, x2: width - MARGIN.side, y1: floor, y2: floor }),
    svg("line", line),
    ...TICKS.map((tick) => svg("text", { x: across(tick), y: HEIGHT - 8, "text-anchor": "middle" }, String(tick))),
  );
}

function histogram(probabilities) {
  const bins = new Array(BINS).fill(0);
  for (const probability of probabilities) {
    const place = Math.floor(((logOdds(probability) + EDGE) / (2 * EDGE)) * BINS);
    bins[Math.min(BINS - 1, place)] += 1 / probabilities.length;
  }
  return bins;
}

function outline(bins, most, width) {
  const step = (width - 2 * MARGIN.side) / BINS;
  const floor = HEIGHT - MARGIN.bottom;
  const tops = bins.map((share, place) => {
    const [x, y] = [MARGIN.side + place * step, floor - (share / most) * (floor - MARGIN.top)];
    return `L${x.toFixed(1)} ${y.toFixed(1)} H${(x + step).toFixed(1)}`;
  });
  return `M${MARGIN.side} ${floor} ${tops.join(" ")} V${floor} Z`;
}
