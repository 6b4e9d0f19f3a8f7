// The numbers that Python put into the page, and how they are written.
const report = JSON.parse(document.getElementById("numbers").textContent);
const names = report.names;
const size = names.length;
// What shares are called: probabilities of draws, frequencies among resamples. One graph has none, but edges and weights.
const words = report.words;
const single = report.kind === "estimate";

function byId(id) {
  return document.getElementById(id);
}

// Make an element with a class and a text; text never becomes markup.
function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function place(parent, child) {
  return parent * size + child;
}

// A relation's probability and error, from a flat matrix; edges have a status too.
function estimate(matrix, parent, child) {
  const at = place(parent, child);
  const status = matrix === report.edges ? statusOf(parent, child) : "";
  return { value: matrix.probability[at], mcse: matrix.mcse[at], status };
}

// That two are joined, either way; only what is above the diagonal is kept.
function joinedEstimate(one, other) {
  const [i, j] = one < other ? [one, other] : [other, one];
  const at = i * size - (i * (i + 1)) / 2 + (j - i - 1);
  return { value: report.joined.probability[at], mcse: report.joined.mcse[at] };
}

function statusOf(parent, child) {
  return report.edges.statuses[report.edges.status[place(parent, child)]];
}

// As on the command line: 0 is exact, and no error can be given for what never changed.
function errorText(mcse) {
  if (mcse === null) return "–";
  return mcse === 0 ? "exact" : mcse.toFixed(3);
}

function errorWords(found) {
  if (found.mcse === 0) return "exact";
  if (found.mcse !== null) return "± " + found.mcse.toFixed(3);
  if (found.value === 0) return words.never;
  if (found.value === 1) return words.always;
  return found.status === "chains disagree" ? "no error known: each chain has its own answer" : "no error known";
}

function formatted(found) {
  return found.value.toFixed(3) + " (" + errorWords(found) + ")";
}

function arrow(parent, child) {
  return names[parent] + " → " + names[child];
}

// A name that may be broken after its separators; what is too long for a line is cut, and shown when pointed at.
function nameText(name) {
  const element = make("span", "name");
  element.title = name;
  name.split(/(?<=[_.:,;|])/).forEach((part, k) => element.append(...(k ? [make("wbr"), part] : [part])));
  return element;
}

// Variables to choose from, in the order of the columns.
function variableOptions(numbers) {
  return [...new Set(numbers)].sort((a, b) => a - b).map((number) => {
    const option = make("option", "", names[number]);
    option.value = String(number);
    return option;
  });
}

function barOf(probability) {
  const bar = make("span", "bar");
  const part = make("i");
  part.style.width = (100 * probability).toFixed(1) + "%";
  bar.append(part);
  bar.setAttribute("aria-hidden", "true");
  return bar;
}
