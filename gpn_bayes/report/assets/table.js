// The table of edges: sorted, searched, and drawn a page at a time.
const [firstPage, nextPage] = [25, 100];
const table = { rows: [], chosen: [], shown: 0, key: report.columns.sort, descending: report.columns.descending };

// The edge of one graph that a line of the network stands for, its numbers, and in words.
function edgeOf(link) {
  const ends = [link.parent, link.child];
  return report.listed.find((edge) => ends.includes(edge.from) && ends.includes(edge.to));
}

function edgeNumbers(edge) {
  return edge.weight === null ? [] : [make("span", "number", edge.weight.toFixed(3))];
}

function edgeWords(edge) {
  const sign = edge.type === "undirected" ? " – " : " → ";
  return edge.parent + sign + edge.child + (edge.weight === null ? "" : `: ${words.weight} ${edge.weight.toFixed(3)}`);
}

function tableRow(parent, child) {
  const at = place(parent, child);
  const { probability, mcse, ess, r_hat } = report.edges;
  return {
    parent: names[parent], child: names[child], from: parent, to: child,
    probability: probability[at], mcse: mcse[at], ess: ess[at], r_hat: r_hat[at], status: statusOf(parent, child),
  };
}

function allRows() {
  if (single) return report.listed;
  const rows = [];
  for (let parent = 0; parent < size; parent += 1) {
    for (let child = 0; child < size; child += 1) if (child !== parent) rows.push(tableRow(parent, child));
  }
  return rows;
}

// By code points, as Python sorts names.
function compareTexts(a, b) {
  const [one, other] = [[...a], [...b]];
  const at = one.findIndex((letter, k) => letter !== other[k]);
  if (at < 0) return one.length - other.length;
  return at < other.length ? one[at].codePointAt(0) - other[at].codePointAt(0) : 1;
}

function compareValues(a, b, descending) {
  // What isn't known stands last, whichever way the table is sorted.
  if (a === null || b === null) return (a === null) - (b === null);
  const order = typeof a === "string" ? compareTexts(a, b) : a - b;
  return descending ? -order : order;
}

function compareRows(a, b) {
  return compareValues(a[table.key], b[table.key], table.descending)
    || compareTexts(a.parent, b.parent) || compareTexts(a.child, b.child);
}

// Every word must be in one of the two names.
function chooseRows() {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter((word) => word && word !== "->" && word !== "→");
  table.chosen = table.rows.filter((row) => {
    const text = (row.parent + "\n" + row.child).toLowerCase();
    return words.every((word) => text.includes(word));
  }).sort(compareRows);
}

function cell(className, text) {
  return make("td", className, text);
}

function nameCell(name) {
  const own = cell("named", "");
  own.append(nameText(name));
  return own;
}

function drawRow(row) {
  const line = make("tr", row.type === "undirected" ? "undirected" : "");
  line.append(nameCell(row.parent), nameCell(row.child), ...report.columns.further.map((key) => numberCells[key](row)));
  return line;
}

// The cell of each column after the two names.
const numberCells = {
  probability: (row) => {
    const own = cell("number", "");
    own.append(barOf(row.probability), row.probability.toFixed(3));
    if (row.mcse !== null) own.append(make("small", "narrow", row.mcse === 0 ? "exact" : "± " + row.mcse.toFixed(3)));
    return own;
  },
  mcse: (row) => cell("number wide", errorText(row.mcse)),
  ess: (row) => cell("number wide", row.ess === null ? "–" : Math.round(row.ess).toLocaleString("en")),
  r_hat: (row) => cell("number wide", row.r_hat === null ? "–" : row.r_hat.toFixed(3)),
  status: (row) => cell("wide", row.status),
  weight: (row) => {
    const own = cell("number", row.weight === null ? "–" : row.weight.toFixed(3));
    if (row.evidence) own.append(make("small", "narrow", row.evidence));
    return own;
  },
  evidence: (row) => cell("wide", row.evidence),
  type: (row) => cell("wide", row.type),
};

function showMore() {
  const next = table.chosen.slice(table.shown, table.shown + (table.shown ? nextPage : firstPage));
  table.shown += next.length;
  byId("edges").tBodies[0].append(...next.map(drawRow));
  const rest = table.chosen.length - table.shown;
  byId("more").hidden = rest === 0;
  byId("more").textContent = `Show ${Math.min(rest, nextPage)} more`;
  byId("count").textContent = `${table.shown.toLocaleString("en")} of ${table.chosen.length.toLocaleString("en")} edges shown`;
}

function redrawTable() {
  chooseRows();
  table.shown = 0;
  byId("edges").tBodies[0].replaceChildren();
  showMore();
  document.querySelectorAll("#edges th").forEach((heading) => {
    if (heading.dataset.key !== table.key) heading.removeAttribute("aria-sort");
    else heading.setAttribute("aria-sort", table.descending ? "descending" : "ascending");
  });
}

function sortBy(key) {
  const isText = ["parent", "child", "status", "type"].includes(key);
  table.descending = key === table.key ? !table.descending : !isText;
  table.key = key;
  redrawTable();
}

// A name that a spreadsheet would take for a formula stands after an apostrophe.
function csvField(name) {
  const value = /^[=+\-@\t\r]/.test(name) ? "'" + name : name;
  return /[",\r\n]/.test(value) ? '"' + value.replaceAll('"', '""') + '"' : value;
}

function csvNumber(value, decimals) {
  return value === null ? "" : value.toFixed(decimals);
}

const csvCells = {
  parent: (row) => csvField(row.parent),
  child: (row) => csvField(row.child),
  probability: (row) => csvNumber(row.probability, 6),
  mcse: (row) => csvNumber(row.mcse, 6),
  ess: (row) => (row.status === "exact" ? "inf" : csvNumber(row.ess, 1)),
  r_hat: (row) => csvNumber(row.r_hat, 4),
  status: (row) => row.status,
  type: (row) => row.type,
  weight: (row) => csvNumber(row.weight, 6),
};

// The rows that are chosen, as edges.csv holds them.
function csvText() {
  const keys = report.columns.csv;
  const lines = table.chosen.map((row) => keys.map((key) => csvCells[key](row)).join(","));
  const heading = keys.map((key) => (key === "probability" ? words.share : key)).join(",");
  return [heading, ...lines].join("\n") + "\n";
}

function downloadCsv() {
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([csvText()], { type: "text/csv" }));
  link.download = "edges.csv";
  link.click();
  URL.revokeObjectURL(link.href);
}

function startTable() {
  table.rows = allRows();
  document.querySelectorAll("#edges th").forEach((heading) => {
    heading.querySelector("button").addEventListener("click", () => sortBy(heading.dataset.key));
  });
  byId("search").addEventListener("input", redrawTable);
  byId("more").addEventListener("click", showMore);
  byId("csv").addEventListener("click", downloadCsv);
  redrawTable();
}
