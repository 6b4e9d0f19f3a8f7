// Small charts in SVG: fitted curves, and the trace of the log score.
const svgSpace = "http://www.w3.org/2000/svg";
const chainColours = ["clear", "open", "good", "caution", "poor", "muted"];

function svgElement(tag, attributes, parent) {
  const element = document.createElementNS(svgSpace, tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  if (parent) parent.append(element);
  return element;
}

// A few round numbers between two others.
function ticks(low, high) {
  const rough = (high - low) / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k += 1) found.push(k * step);
  return { at: found, decimals: Math.max(0, -Math.floor(Math.log10(step))) };
}

function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  values.forEach((value) => {
    low = Math.min(low, value);
    high = Math.max(high, value);
  });
  const room = high > low ? 0.03 * (high - low) : 1;
  return [low - room, high + room];
}

// A frame with axes; returns the SVG and how values become places in it.
function frame(label, width, height, xs, ys) {
  const upwards = ticks(ys[0], ys[1]);
  // A digit takes 7 pixels or so: long numbers need more room than the usual 50.
  const longest = Math.max(...upwards.at.map((value) => value.toFixed(upwards.decimals).length), 0);
  const left = Math.max(50, 12 + 7.2 * longest);
  const [bottom, top, right] = [24, 6, 8];
  const svg = svgElement("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const x = (value) => left + ((value - xs[0]) / (xs[1] - xs[0])) * (width - left - right);
  const y = (value) => height - bottom - ((value - ys[0]) / (ys[1] - ys[0])) * (height - top - bottom);
  const edge = height - bottom;
  svgElement("path", { class: "axis", d: `M${left} ${top}V${edge}H${width - right}` }, svg);
  drawTicks(ticks(xs[0], xs[1]), (value) => ({ x: x(value), y: height - 6, "text-anchor": "middle" }), svg);
  drawTicks(upwards, (value) => ({ x: left - 6, y: y(value) + 4, "text-anchor": "end" }), svg);
  return { svg, x, y };
}

function drawTicks(found, position, svg) {
  found.at.forEach((value) => {
    svgElement("text", position(value), svg).textContent = value.toFixed(found.decimals);
  });
}

function linePath(points) {
  return points.map(([x, y], k) => (k ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1)).join("");
}

// The area between two lines.
function drawBand(lower, upper, className, svg) {
  svgElement("path", { class: className, d: linePath(upper.concat([...lower].reverse())) + "Z" }, svg);
}

// Values from one end to the other, as many as a curve has.
function evenly(ends, values) {
  return values.map((_, k) => ends[0] + (k / (values.length - 1)) * (ends[1] - ends[0]));
}

// How a variable depends on one parent: mean, band and rows.
function curveChart(curve, childName) {
  const parentName = names[curve.parent];
  const rows = report.curves.rows[curve.parent];
  const at = evenly(curve.x, curve.mean);
  const ys = extent(curve.lower.concat(curve.upper, curve.dots));
  const label = `${childName} as a function of ${parentName}`;
  const { svg, x, y } = frame(label, 340, 190, extent(curve.x), ys);
  curve.dots.forEach((value, k) => {
    svgElement("circle", { class: "dot", cx: x(rows[k]).toFixed(1), cy: y(value).toFixed(1), r: 1.6 }, svg);
  });
  const side = (values) => at.map((value, k) => [x(value), y(values[k])]);
  drawBand(side(curve.lower), side(curve.upper), "band", svg);
  svgElement("path", { class: "mean", d: linePath(side(curve.mean)) }, svg);
  const figure = make("figure", "figure");
  figure.append(make("figcaption", "", `${childName} (upwards) against ${parentName}`), svg);
  return figure;
}

// The log scores of all chains, draw by draw.
function traceChart(chains, width) {
  const longest = Math.max(...chains.map((chain) => chain.length));
  const xs = [0, Math.max(longest - 1, 1)];
  const { svg, x, y } = frame("Log score of the draws, by chain", width, 200, xs, extent(chains.flat()));
  svg.querySelectorAll("text[text-anchor=middle]").forEach((text) => text.remove());
  chains.forEach((chain, k) => {
    const d = linePath(chain.map((value, draw) => [x(draw), y(value)]));
    const stroke = `var(--${chainColours[k % chainColours.length]})`;
    svgElement("path", { class: "chain", d, style: "stroke:" + stroke }, svg);
  });
  const figure = make("figure", "figure");
  figure.append(make("figcaption", "", "Log score of the draws in their order, one line a chain: they should overlap."), svg);
  return figure;
}
