// The network as drawings in SVG that Python made: one is chosen, zoomed and marked; the slider hides what is less probable.
const drawn = report.network;
const layouts = [...document.querySelectorAll("template.layout")].map((template) => {
  return { width: Number(template.dataset.width), height: Number(template.dataset.height), svg: template.content.firstElementChild };
});
// Letters in nodes: their size in the drawing, as in the style sheet, and on the screen at most, and at least for a drawing to be read.
const [fontSize, largestFont, legibleFont] = [13, 15, 8.5];
// By how much a press of a button zooms.
const zoomStep = 1.35;
const view = { layout: null, width: 0, height: 0, scale: 1, x: 0, y: 0, fitted: 1 };
let nodeElements = [];
let linkElements = [];
let chosenNode = null;

// Python guessed the widths of letters: where a font is wider, they shrink.
function fitName(node) {
  const room = node.querySelector("rect").width.baseVal.value - 8;
  const text = node.querySelector("text");
  const widest = Math.max(...[...text.children].map((line) => line.getComputedTextLength()));
  if (widest > room) text.style.fontSize = ((fontSize * room) / widest).toFixed(2) + "px";
}

// A line is told by its numbers wherever one points near it.
function startLink(element) {
  const touch = element.querySelector(".line").cloneNode();
  touch.setAttribute("class", "touch");
  touch.removeAttribute("stroke-width");
  element.append(touch);
  const words = linkWords(linkOf(element));
  ["pointerenter", "pointermove", "click"].forEach((kind) => touch.addEventListener(kind, (event) => showTip(words, event)));
  touch.addEventListener("pointerleave", hideTip);
}

function linkOf(element) {
  return drawn.links[Number(element.dataset.link)];
}

function redrawNetwork() {
  const canvas = byId("drawn");
  canvas.replaceChildren(...view.layout.svg.cloneNode(true).children);
  linkElements = [...canvas.querySelectorAll(".link")];
  nodeElements = [...canvas.querySelectorAll(".node")];
  linkElements.forEach(startLink);
  nodeElements.forEach((element) => {
    fitName(element);
    element.addEventListener("click", () => { if (!dragged) chooseVariable(Number(element.dataset.node)); });
  });
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
  linkElements.forEach((element) => element.classList.toggle("low", linkOf(element).probability < threshold()));
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
  nodeElements.forEach((element) => element.classList.toggle("chosen", Number(element.dataset.node) === chosenNode));
  linkElements.forEach((element) => {
    const { parent, child } = linkOf(element);
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
  const best = layouts.reduce((a, b) => (fittedScale(b, width) > fittedScale(a, width) ? b : a));
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
  const font = fontSize * Math.max(...layouts.map((layout) => fittedScale(layout, width)));
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
