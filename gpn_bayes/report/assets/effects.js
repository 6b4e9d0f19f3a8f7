// What happens to one variable if another is set: the effects that were computed ahead of time.
const effects = report.effects;
const listedEvery = 3;

function pairOf(cause, outcome) {
  return effects.pairs.find((pair) => pair.cause === cause && pair.outcome === outcome);
}

// How to write numbers that lie within a span: the last digit is worth a fortieth of it or less.
function writer(span) {
  const decimals = span > 0 ? 1 - Math.floor(Math.log10(span / 4)) : 2;
  if (decimals > 6) return (value) => (value === 0 ? "0" : value.toPrecision(2));
  const places = Math.max(0, decimals);
  const options = { minimumFractionDigits: places, maximumFractionDigits: places };
  return (value) => value.toLocaleString("en", { ...options, signDisplay: "negative" }).replace("-", "−");
}

function between(write, lower, upper) {
  return `${write(lower)} to ${write(upper)}`;
}

function anyEffect(pair) {
  return `Probability of any effect: ${pair.probability.toFixed(2)}.`;
}

// How the outcome changes with each unit of the cause, in a sentence.
function slopeSentence(pair, [mean, lower, upper], opening) {
  const write = writer(Math.max(upper, mean, 0) - Math.min(lower, mean, 0));
  return `${opening} ${names[pair.cause]} is raised by one unit, ${names[pair.outcome]} changes by ${write(mean)} `
    + `(90% between ${write(lower)} and ${write(upper)}). ${anyEffect(pair)}`;
}

// Which level's probability depends most on the cause, and how.
function levelSentence(pair) {
  const [rows, columns] = [effects.levels[pair.cause], effects.levels[pair.outcome]];
  const options = columns.map((level, k) => {
    const own = rows.map((_, row) => pair.mean[row * columns.length + k]);
    const [low, high] = [Math.min(...own), Math.max(...own)];
    return { level, low, high, least: rows[own.indexOf(low)], most: rows[own.indexOf(high)] };
  });
  const chosen = options.reduce((a, b) => (b.high - b.low > a.high - a.low ? b : a));
  const cause = names[pair.cause];
  return `The probability of ${names[pair.outcome]} = ${chosen.level} is ${chosen.low.toFixed(2)} if ${cause} is set to `
    + `${chosen.least}, and ${chosen.high.toFixed(2)} if it is set to ${chosen.most}. ${anyEffect(pair)}`;
}

// At which levels of the cause the mean of the outcome is lowest and highest.
function meansSentence(pair) {
  const levels = effects.levels[pair.cause];
  const [low, high] = [Math.min(...pair.mean), Math.max(...pair.mean)];
  const write = writer(Math.max(...pair.upper) - Math.min(...pair.lower));
  const at = (value) => levels[pair.mean.indexOf(value)];
  return `The mean of ${names[pair.outcome]} is ${write(low)} if ${names[pair.cause]} is set to ${at(low)}, and `
    + `${write(high)} if it is set to ${at(high)}. ${anyEffect(pair)}`;
}

// What a mark in a chart means.
function keyList(keys) {
  const list = make("ul", "keys");
  keys.forEach(([tag, attributes, text]) => {
    const svg = svgElement("svg", { viewBox: "0 0 24 12", "aria-hidden": "true" });
    svgElement(tag, attributes, svg);
    const line = make("li");
    line.append(svg, text);
    list.append(line);
  });
  return list;
}

function chartWidth() {
  return Math.max(300, Math.min(640, byId("effect").clientWidth * (byId("effect").clientWidth > 800 ? 0.57 : 1)));
}

function captioned(text, svg, keys) {
  const figure = make("figure", "figure");
  figure.append(make("figcaption", "", text), svg, keyList(keys));
  return figure;
}

// The histogram of effects that aren't zero; the probability of none is a line of its own.
function slopeChart(pair) {
  const { ends, shares, probability } = pair;
  const label = `Effect of ${names[pair.cause]} on ${names[pair.outcome]}`;
  const top = Math.max(...shares);
  const { svg, x, y } = frame(label, chartWidth(), 240, extent([0, ...ends]), [0, top > 0 ? 1.05 * top : 1]);
  const step = (ends[1] - ends[0]) / shares.length;
  shares.forEach((share, k) => {
    const [left, right] = [x(ends[0] + k * step), x(ends[0] + (k + 1) * step)];
    const height = y(0) - y(share);
    const box = { class: "some", x: left.toFixed(1), y: y(share).toFixed(1), width: Math.max(right - left - 0.5, 0.5).toFixed(1), height: height.toFixed(1) };
    if (share > 0) svgElement("rect", box, svg);
  });
  const keys = [["rect", { class: "some", width: 24, height: 12 }, `an effect: probability ${probability.toFixed(2)}`]];
  if (probability < 1) {
    svgElement("path", { class: "none", d: `M${x(0).toFixed(1)} ${y(0).toFixed(1)}V6` }, svg);
    keys.push(["path", { class: "none", d: "M12 0V12" }, `no effect: probability ${(1 - probability).toFixed(2)}`]);
  }
  return captioned(`Probability (upwards) of a change of ${names[pair.outcome]} for each unit of ${names[pair.cause]}`, svg, keys);
}

function effectChart(pair) {
  const at = evenly(pair.x, pair.mean);
  const [cause, outcome] = [names[pair.cause], names[pair.outcome]];
  const ys = extent(pair.lowest.concat(pair.highest, pair.lower, pair.upper));
  const { svg, x, y } = frame(`${outcome} if ${cause} is set`, chartWidth(), 260, extent(pair.x), ys);
  const side = (values) => at.map((value, k) => [x(value), y(values[k])]);
  drawBand(side(pair.lowest), side(pair.highest), "band outcomes", svg);
  drawBand(side(pair.lower), side(pair.upper), "band", svg);
  svgElement("path", { class: "mean", d: linePath(side(pair.mean)) }, svg);
  return captioned(`${outcome} (upwards) if ${cause} is set`, svg, [
    ["path", { class: "mean", d: "M0 6H24" }, "mean"],
    ["rect", { class: "band", width: 24, height: 12 }, "90% for the mean"],
    ["rect", { class: "band outcomes", width: 24, height: 12 }, "90% of outcomes"],
  ]);
}

// A table whose first column names its rows, with or without headings; cells are texts or elements.
function numberTable(caption, headings, rows) {
  const table = make("table");
  table.append(make("caption", "", caption));
  const head = headings.length ? table.createTHead().insertRow() : null;
  headings.forEach((heading, k) => {
    const own = make("th", k ? "number" : "");
    own.scope = "col";
    own.append(heading);
    head.append(own);
  });
  const body = table.createTBody();
  rows.forEach(([name, ...cells]) => {
    const line = body.insertRow();
    const first = make("th");
    first.scope = "row";
    first.append(name);
    line.append(first, ...cells.map((own) => {
      const td = make("td", "number");
      td.append(...[own].flat());
      return td;
    }));
  });
  const box = make("div", "table");
  box.append(table);
  return box;
}

function slopeNumbers(pair) {
  const write = writer(Math.max(pair.upper, pair.mean, 0) - Math.min(pair.lower, pair.mean, 0));
  return numberTable(`Change of ${names[pair.outcome]} for each unit of ${names[pair.cause]}`, [], [
    ["Mean", write(pair.mean)],
    ["Standard deviation", write(pair.sd)],
    ["90% interval", between(write, pair.lower, pair.upper)],
    ["Probability of any effect", pair.probability.toFixed(2)],
    ["90% interval, given an effect", pair.given === null ? "–" : between(write, ...pair.given)],
    ["Monte Carlo error of the mean", pair.mcse === null ? "–" : pair.mcse.toPrecision(1)],
  ]);
}

function curveNumbers(pair) {
  const write = writer(Math.max(...pair.highest) - Math.min(...pair.lowest));
  const writeCause = writer(pair.x[1] - pair.x[0]);
  const rows = evenly(pair.x, pair.mean).map((value, k) => [
    writeCause(value), write(pair.mean[k]), between(write, pair.lower[k], pair.upper[k]),
    between(write, pair.lowest[k], pair.highest[k]),
  ]).filter((_, k) => k % listedEvery === 0);
  const headings = [nameText(names[pair.cause]), "Mean", "90% for the mean", "90% of outcomes"];
  return numberTable(`${names[pair.outcome]} if ${names[pair.cause]} is set to a value`, headings, rows);
}

function levelNumbers(pair) {
  const [levels, outcomes] = [effects.levels[pair.cause], effects.levels[pair.outcome]];
  const rows = levels.map((level, row) => [nameText(level), ...outcomes.map((_, k) => {
    const at = row * outcomes.length + k;
    const ends = between((value) => value.toFixed(2), pair.lower[at], pair.upper[at]);
    return [pair.mean[at].toFixed(2), make("small", "", ends), barOf(pair.mean[at])];
  })]);
  const caption = `Probability of each level of ${names[pair.outcome]} if ${names[pair.cause]} is set, with 90% intervals`;
  return numberTable(caption, [nameText(names[pair.cause]), ...outcomes.map(nameText)], rows);
}

function meansNumbers(pair) {
  const write = writer(Math.max(...pair.upper) - Math.min(...pair.lower));
  const rows = effects.levels[pair.cause].map((level, k) => [
    nameText(level), write(pair.mean[k]), between(write, pair.lower[k], pair.upper[k]),
    between(write, pair.lowest[k], pair.highest[k]),
  ]);
  const headings = [nameText(names[pair.cause]), "Mean", "90% for the mean", "90% of outcomes"];
  return numberTable(`${names[pair.outcome]} if ${names[pair.cause]} is set to a level`, headings, rows);
}

function effectParts(pair) {
  if (pair.quantity === "slope") {
    return [slopeSentence(pair, [pair.mean, pair.lower, pair.upper], "If"), [slopeChart(pair), slopeNumbers(pair)]];
  }
  if (pair.quantity === "means") return [meansSentence(pair), [meansNumbers(pair)]];
  if (pair.quantity === "curve") {
    return [slopeSentence(pair, pair.slope, "Averaged over the rows: if"), [effectChart(pair), curveNumbers(pair)]];
  }
  return [levelSentence(pair), [levelNumbers(pair)]];
}

function effectHint() {
  const { networks, all, left } = effects;
  const some = networks < all ? `${networks.toLocaleString("en")} of the ${all.toLocaleString("en")} networks drawn` : "all networks drawn";
  const rest = left ? ` ${left.toLocaleString("en")} less probable ${left === 1 ? "pair was" : "pairs were"} left out; effect in Python computes any.` : "";
  return `Averaged over ${some} and the parameters of their equations; without a directed path the effect is zero. `
    + `Assumes that no common cause is unmeasured, that there are no cycles, and equations as the score has them.${rest}`;
}

function showEffect() {
  const pair = pairOf(Number(byId("cause").value), Number(byId("outcome").value));
  const [sentence, parts] = effectParts(pair);
  const box = make("div", ["table", "means", "curves"].includes(pair.quantity) ? "effect levels" : "effect");
  box.append(...parts);
  byId("effect").replaceChildren(make("p", "", sentence), box, make("p", "hint", effectHint()));
}

// Offer the outcomes of a cause: the one looked at stays if it can, else the one with the largest effect is chosen.
function chooseCause(outcome) {
  const cause = Number(byId("cause").value);
  const own = effects.pairs.filter((pair) => pair.cause === cause);
  byId("outcome").replaceChildren(...variableOptions(own.map((pair) => pair.outcome)));
  byId("outcome").value = String(pairOf(cause, outcome) ? outcome : own[0].outcome);
  showEffect();
}

function startEffects() {
  byId("effect-choice").hidden = effects.missing !== "";
  if (effects.missing) {
    byId("effect").append(make("p", "hint", effects.missing));
    return;
  }
  byId("cause").append(...variableOptions(effects.pairs.map((pair) => pair.cause)));
  byId("cause").value = String(effects.pairs[0].cause);
  byId("cause").addEventListener("change", () => chooseCause(Number(byId("outcome").value)));
  byId("outcome").addEventListener("change", showEffect);
  chooseCause(effects.pairs[0].outcome);
}
