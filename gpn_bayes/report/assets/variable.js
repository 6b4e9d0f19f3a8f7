// One variable: its parents and children, its most probable parent sets, and its fitted curves.
const listedFrom = 0.05;
const listedMost = 12;

// The neighbours of a variable by decreasing probability.
function neighbours(number, towards) {
  const found = [];
  for (let other = 0; other < size; other += 1) {
    if (other !== number) {
      const edge = towards ? [other, number] : [number, other];
      found.push({ other, ...estimate(report.edges, ...edge) });
    }
  }
  return found.sort((a, b) => b.value - a.value).filter((own) => own.value >= listedFrom);
}

function variableButton(number) {
  const button = make("button", "link");
  button.type = "button";
  button.append(nameText(names[number]));
  button.addEventListener("click", () => chooseVariable(number));
  return button;
}

function neighbourList(found) {
  if (!found.length) return make("p", "muted", single ? "none" : `none of ${words.share} ${listedFrom} or more`);
  const list = make("ul");
  found.slice(0, listedMost).forEach((own) => {
    const line = make("li");
    line.append(variableButton(own.other), ...(own.edge ? edgeNumbers(own.edge) : [barOf(own.value), make("span", "number", own.value.toFixed(3))]));
    line.title = own.edge ? edgeWords(own.edge) : formatted(own);
    list.append(line);
  });
  if (found.length > listedMost) list.append(make("li", "muted", `and ${found.length - listedMost} more`));
  return list;
}

function setList(sets) {
  const list = make("ul", "sets");
  sets.forEach(([parents, probability]) => {
    const line = make("li");
    const text = make("span", parents.length ? "" : "muted", parents.length ? undefined : "no parents");
    parents.forEach((parent, k) => text.append(k ? ", " : "", nameText(names[parent])));
    line.append(text, make("span", "number", probability.toFixed(3)));
    list.append(line);
  });
  return list;
}

function curveList(number) {
  const { missing, of, levels, left, shown, all } = report.curves;
  const box = make("div", "curves");
  const curves = of[number];
  if (curves && curves.length) {
    box.append(make("h3", "", "Fitted curves"));
    const charts = make("div", "charts");
    charts.append(...curves.map((curve) => curveChart(curve, names[number])));
    box.append(charts);
    const rows = shown < all ? `${shown} of ${all} rows` : "the rows";
    box.append(make("p", "hint", `Line: the mean function; band: 90% of its probability; dots: ${rows}, less what other parents add.`));
  } else if (missing) {
    box.append(make("p", "hint", missing));
  } else if (left.includes(number)) {
    box.append(make("p", "hint", "Curves of this variable were left out; plot_curves in Python draws them."));
  }
  const named = (levels[number] || []).map((parent) => names[parent]);
  if (named.length) {
    const them = named.length > 1 ? "are categories, which have no curves" : "is a category, which has no curve";
    box.append(make("p", "hint", `${named.join(", ")} ${them}: see the effects, or plot_curves in Python.`));
  }
  return box;
}

// The parents of a variable in one graph, its children, or what is joined to it without a direction.
function edgesOf(number, kind, end) {
  const own = report.listed.filter((edge) => edge.type === kind && (end ? edge[end] === number : edge.from === number || edge.to === number));
  return own.map((edge) => ({ edge, other: edge.from === number ? edge.to : edge.from }));
}

function detailsInOneGraph(number) {
  const open = edgesOf(number, "undirected", "");
  return [
    part("Parents", neighbourList(edgesOf(number, "directed", "to"))),
    part("Children", neighbourList(edgesOf(number, "directed", "from"))),
    ...(open.length ? [part("Joined, direction undetermined", neighbourList(open))] : []),
  ];
}

function details(number) {
  return [
    part("Parents", neighbourList(neighbours(number, true))),
    part("Children", neighbourList(neighbours(number, false))),
    part(`Most ${words.most} parent sets`, setList(report.sets[number])),
    ...(report.curves ? [curveList(number)] : []),
  ];
}

function chooseVariable(number) {
  byId("variable").value = String(number);
  markNode(number);
  byId("details").replaceChildren(...(single ? detailsInOneGraph(number) : details(number)));
}

function part(title, content) {
  const box = make("div");
  box.append(make("h3", "", title), content);
  return box;
}

function showHint() {
  byId("details").replaceChildren(make("p", "hint", `Choose a variable here or in the network for its ${report.curves ? "parents, children and curves" : "parents and children"}.`));
}

function startVariables() {
  showHint();
  const select = byId("variable");
  const none = make("option", "", "Choose a variable …");
  none.value = "";
  select.append(none, ...variableOptions(names.keys()));
  select.addEventListener("change", () => {
    if (select.value !== "") {
      chooseVariable(Number(select.value));
    } else {
      clearMarks();
      showHint();
    }
  });
}
