// The network, drawn by Cytoscape where Python placed it; the slider hides what is less probable.
let network = null;
// Lines of large networks are thinner, and their arrowheads smaller.
const lineScale = size > 40 ? 0.5 : 1;

function nodeElement(node, k) {
  return {
    group: "nodes", data: { id: "n" + k, number: k, label: node.label, width: node.width, height: node.height },
    position: { x: node.x, y: node.y },
  };
}

function linkElement(link) {
  const data = {
    id: `${link.parent}-${link.child}`, source: "n" + link.parent, target: "n" + link.child,
    from: link.parent, to: link.child, probability: link.probability,
    width: lineScale * (1 + 4 * link.probability), opacity: 0.4 + 0.6 * link.probability,
  };
  if (link.bends) {
    data.sourceEnd = link.source.map((value) => value + "px").join(" ");
    data.targetEnd = link.target.map((value) => value + "px").join(" ");
    data.weights = link.bends.map((bend) => bend[0]).join(" ");
    data.distances = link.bends.map((bend) => bend[1]).join(" ");
  }
  return { group: "edges", data, classes: link.direction + (link.bends ? " routed" : "") };
}

function networkStyle() {
  return [
    { selector: "node", style: {
      shape: "round-rectangle", width: "data(width)", height: "data(height)", label: "data(label)",
      "background-color": colour("node"), "border-color": colour("node-line"), "border-width": 1.2, color: colour("ink"),
      "text-valign": "center", "text-halign": "center", "text-wrap": "wrap", "font-size": 14, "line-height": 1.2,
      "font-family": "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, Arial, sans-serif",
    } },
    { selector: "edge", style: {
      width: "data(width)", opacity: "data(opacity)", "line-color": colour("told"), "target-arrow-color": colour("told"),
      "target-arrow-shape": "triangle", "arrow-scale": 1, "curve-style": "unbundled-bezier",
      "control-point-weights": "0.5", "control-point-distances": "14",
    } },
    { selector: "edge.routed", style: {
      "edge-distances": "endpoints", "source-endpoint": "data(sourceEnd)",
      "target-endpoint": "data(targetEnd)", "control-point-weights": "data(weights)", "control-point-distances": "data(distances)",
    } },
    { selector: "edge.likelier", style: { "target-arrow-fill": "hollow" } },
    { selector: "edge.open", style: { "target-arrow-shape": "none", "line-color": colour("open") } },
    { selector: "edge.low", style: { display: "none" } },
    { selector: "edge.far", style: { opacity: 0.08 } },
    { selector: "node.chosen", style: { "border-color": colour("told"), "border-width": 3.5 } },
  ];
}

function linkWords(data) {
  const { from, to } = data;
  const there = estimate(report.edges, from, to);
  const back = estimate(report.edges, to, from);
  const joined = joinedEstimate(from, to);
  return `${names[from]} – ${names[to]} joined: ${told(joined)}\n${arrow(from, to)}: ${told(there)}\n${arrow(to, from)}: ${told(back)}`;
}

function showTip(text, position) {
  const tip = byId("tip");
  const canvas = tip.parentElement;
  tip.textContent = text;
  tip.hidden = false;
  const left = Math.min(position.x + 12, canvas.clientWidth - tip.offsetWidth - 6);
  const above = position.y - tip.offsetHeight - 10;
  tip.style.left = Math.max(left, 6) + "px";
  tip.style.top = (above > 6 ? above : position.y + 14) + "px";
}

function hideTip() {
  byId("tip").hidden = true;
}

function applyThreshold() {
  const threshold = Number(byId("threshold").value);
  byId("threshold-value").textContent = threshold.toFixed(2);
  network.batch(() => network.edges().forEach((edge) => edge.toggleClass("low", edge.data("probability") < threshold)));
  const pairs = (size * (size - 1)) / 2;
  const noun = pairs === 1 ? "pair" : "pairs";
  byId("shown").textContent = `${network.edges().not(".low").length} of ${pairs.toLocaleString("en")} ${noun} shown`;
}

// Mark a variable, and leave the lines of the others in the background.
function markNode(number) {
  network.batch(() => {
    network.elements().removeClass("chosen far");
    const node = network.getElementById("n" + number);
    node.addClass("chosen");
    network.edges().not(node.connectedEdges()).addClass("far");
  });
}

function clearMarks() {
  network.elements().removeClass("chosen far");
}

function zoomBy(factor) {
  const centre = { x: network.width() / 2, y: network.height() / 2 };
  network.zoom({ level: network.zoom() * factor, renderedPosition: centre });
  // Only a network larger than its frame is dragged: else a finger on it scrolls the page.
  network.userPanningEnabled(true);
}

function fitNetwork() {
  network.resize();
  network.fit(undefined, 16);
  if (network.zoom() > 1.15) {
    network.zoom(1.15);
    network.center();
  }
  network.userPanningEnabled(!window.matchMedia("(pointer: coarse)").matches);
}

// A phone's address bar comes and goes as one scrolls: only another width undoes what the reader zoomed to.
function refitOnNewWidth() {
  let width = byId("network").clientWidth;
  window.addEventListener("resize", () => {
    if (byId("network").clientWidth === width) network.resize();
    else fitNetwork();
    width = byId("network").clientWidth;
  });
}

function startNetwork(chooseVariable) {
  const drawn = report.network;
  network = cytoscape({
    container: byId("network"), elements: [...drawn.nodes.map(nodeElement), ...drawn.links.map(linkElement)],
    layout: { name: "preset" }, style: networkStyle(), autoungrabify: true, autounselectify: true,
    boxSelectionEnabled: false, userZoomingEnabled: false, minZoom: 0.05, maxZoom: 4,
  });
  fitNetwork();
  byId("threshold").value = drawn.start;
  byId("threshold").addEventListener("input", applyThreshold);
  network.on("mouseover tap", "edge", (event) => showTip(linkWords(event.target.data()), event.renderedPosition));
  network.on("mouseout", "edge", hideTip);
  network.on("pan zoom", hideTip);
  network.on("tap", "node", (event) => chooseVariable(event.target.data("number")));
  network.on("tap", (event) => { if (event.target === network) hideTip(); });
  byId("zoom-in").addEventListener("click", () => zoomBy(1.3));
  byId("zoom-out").addEventListener("click", () => zoomBy(1 / 1.3));
  byId("zoom-fit").addEventListener("click", fitNetwork);
  refitOnNewWidth();
  themeWatchers.push(() => network.style(networkStyle()));
  applyThreshold();
}
