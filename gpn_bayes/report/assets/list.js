// The pairs of the network as a list: what a small screen can show of it.
const listedPairs = 200;

// The legend's mark of a direction, as wide as the legend has it.
function directionMark(direction) {
  const svg = svgElement("svg", { class: "mark", viewBox: "0 0 30 12", role: "img" });
  svgElement("title", {}, svg).textContent = { clear: "clear direction", likelier: `more ${words.most} direction`, open: "direction undetermined" }[direction];
  if (direction === "open") svgElement("path", { class: "open", d: "M1 6H29" }, svg);
  else {
    svgElement("path", { class: "clear", d: "M1 6H20" }, svg);
    svgElement("path", { class: direction === "clear" ? "clear head" : "clear hollow", d: "M20 1.5L29 6L20 10.5Z" }, svg);
  }
  return svg;
}

// A line about a pair: the mark of its direction stays with the name that it leads to.
function pairLine(link, before, after) {
  const line = make("li", link.direction);
  const pair = make("span", "pair");
  const towards = make("span", "towards");
  towards.append(directionMark(link.direction), variableButton(after));
  pair.append(...before, towards);
  line.append(pair, ...(single ? edgeNumbers(edgeOf(link)) : [barOf(link.probability), make("span", "number", link.probability.toFixed(3))]));
  line.title = linkWords(link);
  return line;
}

function pairList(lines) {
  const list = make("ul", "pairs");
  list.append(...lines);
  return list;
}

// The most probable first.
function byProbability(shown) {
  return [pairList(shown.map((link) => pairLine(link, [variableButton(link.parent), " "], link.child)))];
}

// Under each variable what leads to it; a pair whose direction is open stands under both.
function byChild(shown) {
  return names.flatMap((_, child) => {
    const own = shown.filter((link) => link.child === child || (link.direction === "open" && link.parent === child));
    if (!own.length) return [];
    const heading = make("h3");
    heading.append(variableButton(child));
    return [heading, pairList(own.map((link) => pairLine(link, [], link.child === child ? link.parent : link.child)))];
  });
}

function redrawList() {
  const chosen = drawn.links.filter((link) => link.probability >= threshold()).reverse();
  if (single) chosen.sort((a, b) => report.listed.indexOf(edgeOf(a)) - report.listed.indexOf(edgeOf(b)));
  const shown = chosen.slice(0, listedPairs);
  const rows = byId("list-order").value === "child" ? byChild(shown) : byProbability(shown);
  byId("list").replaceChildren(...rows);
  const rest = chosen.length - shown.length;
  if (rest) byId("list").append(make("p", "hint", `and ${rest.toLocaleString("en")} more, less ${words.most}`));
  if (!chosen.length) byId("list").append(make("p", "hint", single ? "No two variables are joined." : `No pair is as ${words.most} as that.`));
}
