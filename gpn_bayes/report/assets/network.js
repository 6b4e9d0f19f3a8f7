// The network as a drawing in SVG, where Python placed it; the slider hides what is less probable.
const drawn = report.network;
// Letters in nodes: their size in the drawing, as in the style sheet, and on the screen at most, and at least for a drawing to be read.
const [fontSize, largestFont, legibleFont] = [13, 15, 8.5];
const lineHeight = 16;
// How far a line ends before its node, and by how much a press of a button zooms.
const [clearance, zoomStep] = [2, 1.35];
const view = { layout: null, width: 0, height: 0, scale: 1, x: 0, y: 0, fitted: 1 };
const nodeElements = [];
const linkElements = [];
let chosenNode = null;

function widthOf(link) {
  return drawn.thinner * (1 + 4 * link.probability);
}

// The corners of a line from the parent to the child, three for each bend; it is vertical at both ends.
function courseOf(link, number) {
  const [from, to] = [view.layout.nodes[link.parent], view.layout.nodes[link.child]];
  const downwards = from[1] <= to[1];
  const lanes = view.layout.courses[number];
  const points = lanes ? throughLanes(lanes) : freeCurve(downwards ? link.parent : link.child, downwards ? link.child : link.parent);
  return downwards ? points : points.reverse();
}

// Straight in every lane, with a bend to the next; a straight piece is given as a bend too.
function throughLanes(lanes) {
  const points = [[lanes[0][0], lanes[0][1]]];
  lanes.forEach(([x, top, bottom], k) => {
    if (k) {
      const [fromX, fromY] = points[points.length - 1];
      points.push([fromX, (fromY + top) / 2], [x, (fromY + top) / 2], [x, top]);
    }
    if (bottom > top) points.push([x, top + (bottom - top) / 3], [x, bottom - (bottom - top) / 3], [x, bottom]);
  });
  return points;
}

// A bend that heeds no other nodes; two nodes side by side are joined at their bottoms, in the lower half at their tops.
function freeCurve(upper, lower) {
  const [[fromX, fromY], [toX, toY]] = [view.layout.nodes[upper], view.layout.nodes[lower]];
  const [halfFrom, halfTo] = [drawn.sizes[upper][1] / 2, drawn.sizes[lower][1] / 2];
  if (toY - halfTo > fromY + halfFrom) {
    const middle = (toY - halfTo + fromY + halfFrom) / 2;
    return [[fromX, fromY + halfFrom], [fromX, middle], [toX, middle], [toX, toY - halfTo]];
  }
  const side = fromY <= view.layout.height / 2 ? 1 : -1;
  const [start, end] = [fromY + side * halfFrom, toY + side * halfTo];
  return [[fromX, start], [fromX, start + side * drawn.dip], [toX, end + side * drawn.dip], [toX, end]];
}

function pathText(points) {
  const text = points.map(([x, y]) => x.toFixed(1) + " " + y.toFixed(1));
  return "M" + text[0] + "C" + text.slice(1).join(" ");
}

function drawLink(link, number, layer) {
  const group = svgElement("g", { class: "link " + link.direction, opacity: (0.4 + 0.6 * link.probability).toFixed(2) }, layer);
  const points = courseOf(link, number);
  const last = points.length - 1;
  const head = link.direction === "open" ? 0 : 5 + 1.7 * widthOf(link);
  // Whether the line comes to the child from below (1) or from above (-1).
  const sign = Math.sign(points[last - 1][1] - points[last][1]) || -1;
  points[0][1] += clearance * (Math.sign(points[1][1] - points[0][1]) || 1);
  const tip = [points[last][0], points[last][1] + sign * clearance];
  const base = tip[1] + sign * head;
  // Nothing of the line may lie beyond the head's base.
  for (let k = last; k > 0 && sign * (points[k][1] - base) < 0; k -= 1) points[k] = [points[k][0], base];
  const d = pathText(points);
  svgElement("path", { class: "line", d, "stroke-width": widthOf(link).toFixed(2) }, group);
  if (head) {
    const half = (0.55 * head).toFixed(1);
    svgElement("path", { class: "head", d: `M${tip[0]} ${tip[1]}L${tip[0] - half} ${base}H${tip[0] + Number(half)}Z` }, group);
  }
  const touch = svgElement("path", { class: "touch", d }, group);
  touch.addEventListener("pointerenter", (event) => showTip(linkWords(link), event));
  touch.addEventListener("pointermove", (event) => showTip(linkWords(link), event));
  touch.addEventListener("pointerleave", hideTip);
  touch.addEventListener("click", (event) => showTip(linkWords(link), event));
  return group;
}

function drawNode(k, layer) {
  const [[x, y], [width, height]] = [view.layout.nodes[k], drawn.sizes[k]];
  const group = svgElement("g", { class: "node", transform: `translate(${x} ${y})` }, layer);
  svgElement("title", {}, group).textContent = names[k];
  svgElement("rect", { x: -width / 2, y: -height / 2, width, height, rx: 7 }, group);
  const lines = drawn.labels[k];
  const text = svgElement("text", { "text-anchor": "middle" }, group);
  lines.forEach((line, row) => {
    const down = (row - (lines.length - 1) / 2) * lineHeight;
    svgElement("tspan", { x: 0, y: down, dy: "0.35em" }, text).textContent = line;
  });
  // Python guessed the widths of letters: where a font is wider, they shrink.
  const widest = Math.max(...[...text.children].map((line) => line.getComputedTextLength()));
  if (widest > width - 8) text.style.fontSize = ((fontSize * (width - 8)) / widest).toFixed(2) + "px";
  group.addEventListener("click", () => { if (!dragged) chooseVariable(k); });
  return group;
}

function drawBands(layer) {
  view.layout.bands.forEach((band, k) => {
    // Beyond both sides of any frame.
    const place = { x: -1e4, y: band.top, width: 2e4 + view.layout.width, height: band.bottom - band.top };
    svgElement("rect", { class: k % 2 ? "band plain" : "band", ...place }, layer);
    const text = svgElement("text", { class: "tier", x: 12, y: (band.top + band.bottom) / 2, dy: "0.35em" }, layer);
    text.textContent = band.label;
  });
}

function redrawNetwork() {
  const canvas = byId("drawn");
  canvas.replaceChildren();
  drawBands(svgElement("g", { class: "tiers" }, canvas));
  const links = svgElement("g", {}, canvas);
  linkElements.splice(0, Infinity, ...drawn.links.map((link, number) => drawLink(link, number, links)));
  const nodes = svgElement("g", {}, canvas);
  nodeElements.splice(0, Infinity, ...drawn.labels.map((_, k) => drawNode(k, nodes)));
  applyMarks();
  hideLowLinks();
}

function linkWords(link) {
  if (single) return edgeWords(edgeOf(link));
  const [from, to] = [link.parent, link.child];
  const there = estimate(report.edges, from, to);
  const back = estimate(report.edges, to, from);
  const joined = joinedEstimate(from, to);
  const ground = link.ground ? `\ndirection ${link.ground}` : "";
  return `${names[from]} – ${names[to]} joined: ${formatted(joined)}\n${arrow(from, to)}: ${formatted(there)}\n${arrow(to, from)}: ${formatted(back)}${ground}`;
}

function showTip(text, event) {
  const tip = byId("tip");
  const canvas = tip.parentElement.getBoundingClientRect();
  const [x, y] = [event.clientX - canvas.left, event.clientY - canvas.top];
  tip.textContent = text;
  tip.hidden = false;
  const left = Math.min(x + 12, canvas.width - tip.offsetWidth - 6);
  const above = y - tip.offsetHeight - 10;
  tip.style.left = Math.max(left, 6) + "px";
  tip.style.top = (above > 6 ? above : y + 14) + "px";
}

function hideTip() {
  byId("tip").hidden = true;
}

function threshold() {
  return single ? 0 : Number(byId("threshold").value);
}

function hideLowLinks() {
  linkElements.forEach((element, k) => element.classList.toggle("low", drawn.links[k].probability < threshold()));
}

function applyThreshold() {
  if (!single) byId("threshold-value").textContent = threshold().toFixed(2);
  hideLowLinks();
  const pairs = (size * (size - 1)) / 2;
  const noun = pairs === 1 ? "pair" : "pairs";
  const shown = drawn.links.filter((link) => link.probability >= threshold()).length;
  byId("shown").textContent = `${shown} of ${pairs.toLocaleString("en")} ${noun} ${single ? "joined" : "shown"}`;
  if (!byId("links").hidden) redrawList();
}

// Mark a variable, and leave the lines of the others in the background.
function applyMarks() {
  nodeElements.forEach((element, k) => element.classList.toggle("chosen", k === chosenNode));
  linkElements.forEach((element, k) => {
    const { parent, child } = drawn.links[k];
    element.classList.toggle("far", chosenNode !== null && parent !== chosenNode && child !== chosenNode);
  });
}

function markNode(number) {
  chosenNode = number;
  applyMarks();
}

function clearMarks() {
  markNode(null);
}

// Place the drawing so that nothing of it is lost that could be seen.
function showView() {
  const { layout, scale } = view;
  const bounded = (at, room, length) => (length <= room ? (room - length) / 2 : Math.min(0, Math.max(room - length, at)));
  view.x = bounded(view.x, view.width, layout.width * scale);
  view.y = bounded(view.y, view.height, layout.height * scale);
  byId("drawn").setAttribute("transform", `translate(${view.x.toFixed(2)} ${view.y.toFixed(2)}) scale(${scale.toFixed(4)})`);
  // A finger on a drawing that is seen whole scrolls the page; on one that is larger than its frame it moves that.
  byId("network").classList.toggle("zoomed", scale > 1.01 * view.fitted);
}

function zoomTo(scale, x, y) {
  const wanted = Math.min(Math.max(scale, view.fitted), Math.max(4, view.fitted));
  view.x = x - ((x - view.x) * wanted) / view.scale;
  view.y = y - ((y - view.y) * wanted) / view.scale;
  view.scale = wanted;
  hideTip();
  showView();
}

function zoomBy(factor) {
  zoomTo(view.scale * factor, view.width / 2, view.height / 2);
}

// The scale at which a layout fits a width, as high as a screen lets it be.
function fittedScale(layout, width) {
  const highest = width < 600 ? 600 : 860;
  return Math.min(width / layout.width, highest / layout.height, largestFont / fontSize);
}

// Choose the layout with the largest letters, and make the frame as high as it needs.
function fitNetwork() {
  const svg = byId("network");
  const width = svg.clientWidth;
  const best = drawn.layouts.reduce((a, b) => (fittedScale(b, width) > fittedScale(a, width) ? b : a));
  const scale = fittedScale(best, width);
  const height = Math.round(Math.max(best.height * scale, 160));
  svg.style.height = height + "px";
  Object.assign(view, { width, height, scale, fitted: scale, x: 0, y: 0 });
  if (best !== view.layout) {
    view.layout = best;
    redrawNetwork();
  }
  showView();
}

// Fingers and the mouse: one moves the drawing, two zoom; the wheel zooms with the control key, as on maps.
const pointers = new Map();
let dragged = false;

function pointerMoved(event) {
  const before = pointers.get(event.pointerId);
  if (!before) return;
  const others = [...pointers.entries()].filter(([id]) => id !== event.pointerId).map(([, own]) => own);
  const box = byId("network").getBoundingClientRect();
  if (others.length === 1) {
    const [other] = others;
    const distance = (own) => Math.hypot(own.x - other.x, own.y - other.y) || 1;
    const after = { x: event.clientX, y: event.clientY };
    const middle = { x: (after.x + other.x) / 2 - box.left, y: (after.y + other.y) / 2 - box.top };
    zoomTo((view.scale * distance(after)) / distance(before), middle.x, middle.y);
  } else if (!others.length) {
    view.x += event.clientX - before.x;
    view.y += event.clientY - before.y;
    showView();
  }
  if (Math.hypot(event.clientX - before.startX, event.clientY - before.startY) > 4) dragged = true;
  Object.assign(before, { x: event.clientX, y: event.clientY });
}

function startPointers(svg) {
  svg.addEventListener("pointerdown", (event) => {
    dragged = false;
    const [x, y] = [event.clientX, event.clientY];
    pointers.set(event.pointerId, { x, y, startX: x, startY: y });
  });
  window.addEventListener("pointermove", pointerMoved);
  ["pointerup", "pointercancel"].forEach((end) => window.addEventListener(end, (event) => pointers.delete(event.pointerId)));
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    zoomTo(view.scale * 1.0015 ** -event.deltaY, event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  svg.addEventListener("dblclick", (event) => {
    const box = svg.getBoundingClientRect();
    zoomTo(view.scale * zoomStep, event.clientX - box.left, event.clientY - box.top);
  });
  svg.addEventListener("click", (event) => { if (!event.target.closest(".link")) hideTip(); });
}

// A phone's address bar comes and goes as one scrolls: only another width undoes what the reader zoomed to.
// The width is that of the page's own layout, which drawings are fitted to: a frame's window may have its new one before.
function refitOnNewWidth() {
  const page = document.documentElement;
  let width = page.clientWidth;
  window.addEventListener("resize", () => {
    if (page.clientWidth !== width) {
      if (!viewChosen) showFirst();
      else if (!byId("drawing").hidden) fitNetwork();
    }
    width = page.clientWidth;
  });
}

// The frame of a notebook gets its width after its page has started: the choice stands once the reader makes it.
let viewChosen = false;

// Where letters would be too small to be read, the list comes first.
function showFirst() {
  byId("drawing").hidden = false;
  const width = byId("network").clientWidth;
  const font = fontSize * Math.max(...drawn.layouts.map((layout) => fittedScale(layout, width)));
  showAs(font < legibleFont && width < 600);
}

function chooseView(list) {
  viewChosen = true;
  showAs(list);
}

// Either the drawing or the list.
function showAs(list) {
  byId("drawing").hidden = list;
  byId("zoom").hidden = list;
  byId("links").hidden = !list;
  byId("as-drawing").setAttribute("aria-pressed", String(!list));
  byId("as-list").setAttribute("aria-pressed", String(list));
  if (list) redrawList();
  else fitNetwork();
}

function startNetwork() {
  if (!single) {
    byId("threshold").value = drawn.start;
    byId("threshold").addEventListener("input", applyThreshold);
  }
  byId("zoom-in").addEventListener("click", () => zoomBy(zoomStep));
  byId("zoom-out").addEventListener("click", () => zoomBy(1 / zoomStep));
  byId("zoom-fit").addEventListener("click", fitNetwork);
  byId("as-drawing").addEventListener("click", () => chooseView(false));
  byId("as-list").addEventListener("click", () => chooseView(true));
  byId("list-order").addEventListener("change", redrawList);
  startPointers(byId("network"));
  refitOnNewWidth();
  showFirst();
  applyThreshold();
}
