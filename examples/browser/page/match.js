// When two embeddings match: the numbers of `match_model` and `calibration` in the metadata of an exported model.
// An embedding has `mean` and `variance`, each a list of components of D numbers.
const logSigmoid = (x) => (x > 0 ? -Math.log1p(Math.exp(-x)) : x - Math.log1p(Math.exp(x)));
const sigmoid = (x) => Math.exp(logSigmoid(x));

export function logOdds(model, first, second) {
  return model.kind === "evidence" ? evidence(model, first, second) : curve(model, first, second);
}

// All pairs of components: `each` of a pair is a logarithm, of which the mean is taken.
function logMean(first, second, each) {
  const logs = first.mean.flatMap((mean1, i) =>
    second.mean.map((mean2, j) => each(mean1, first.variance[i], mean2, second.variance[j])),
  );
  const most = Math.max(...logs);
  return most === -Infinity ? most : most + Math.log(logs.reduce((sum, x) => sum + Math.exp(x - most), 0) / logs.length);
}

function curve(model, first, second) {
  const { scale, bias, widths, weights } = model;
  let isPoint = true;
  const logP = logMean(first, second, (mean1, variance1, mean2, variance2) => {
    const squares = Array.from(mean1, (m, d) => (scale * (m - mean2[d])) ** 2);
    const spreads = Array.from(variance1, (v, d) => scale ** 2 * (v + variance2[d]));
    const reach = Math.sqrt(squares.reduce((sum, x, d) => sum + x + spreads[d], 0));
    isPoint &&= spreads.every((s) => s === 0);
    let value = 0;
    widths.forEach((c, j) => {
      const exponent = squares.reduce((sum, x, d) => {
        const stretch = 1 + 2 * c * spreads[d];
        return sum + (c * x) / stretch + 0.5 * Math.log(stretch);
      }, 0);
      value += weights[j] * Math.exp(-exponent);
    });
    return isPoint ? logSigmoid(bias - reach) : Math.max(Math.log(Math.max(value, 0)), floor(model, reach));
  });
  const most = Math.min(logP, logSigmoid(bias));
  return most - Math.log(-Math.expm1(most));
}

// Jensen's bound: the chord of the curve up to `chord_end`, then the curve.
function floor({ bias, chord_end: end }, reach) {
  if (reach >= end) return logSigmoid(bias - reach);
  return Math.log(sigmoid(bias) * (1 - reach / end) + sigmoid(bias - end) * (reach / end));
}

function evidence(model, first, second) {
  const asides = ("rarity" in model) + ("clarity" in model);
  const dim = first.mean[0].length - asides;
  let factor = logMean(first, second, (mean1, variance1, mean2, variance2) => {
    let sum = 0;
    for (let d = 0; d < dim; d++) {
      const [m1, m2, s1, s2] = [mean1[d], mean2[d], variance1[d], variance2[d]];
      const t = s1 + (1 - s1) * s2;
      sum += 0.5 * ((s2 * m1 ** 2 + s1 * m2 ** 2 - (m1 - m2) ** 2) / t - Math.log(t));
    }
    return sum;
  });
  if ("rarity" in model && factor > 0) {
    const excess = model.rarity * (first.mean[0][dim] + second.mean[0][dim]);
    factor += (excess * factor) / (factor + Math.abs(excess));
  }
  return model.log_odds + model.temper * factor;
}

export function decide(calibration, odds) {
  const { calibrator, base_rate: rate, reject_below: reject, accept_from: accept } = calibration;
  const verdict = odds >= accept ? "accept" : odds < reject ? "reject" : "abstain";
  return { verdict, probability: sigmoid(calibrated(calibrator, odds) + Math.log(rate / (1 - rate))) };
}

function calibrated({ kind, temperature, shift, scores, values }, odds) {
  if (kind === "temperature") return odds / temperature + shift;
  const right = scores.findIndex((score) => score >= odds);
  if (right <= 0) return right === 0 ? values[0] : values.at(-1);
  const share = (odds - scores[right - 1]) / (scores[right] - scores[right - 1]);
  return values[right - 1] + share * (values[right] - values[right - 1]);
}
