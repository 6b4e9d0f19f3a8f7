// One variable: its parents and children, its most probable parent sets, and its fitted curves.
const listedFrom = 0.05;
const listedMost = 12;

// The neighbours of a variable by falling probability.
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
  const button = make("button", "link", names[number]);
  button.type = "button";
  button.addEventListener("click", () => chooseVariable(number));
  return button;
}

function neighbourList(found) {
  if (!found.length) return make("p", "muted", `none of probability ${listedFrom} or more`);
  const list = make("ul");
  found.slice(0, listedMost).forEach((own) => {
    const line = make("li");
    line.append(variableButton(own.other), barOf(own.value), make("span", "number", own.value.toFixed(3)));
    line.title = told(own);
    list.append(line);
  });
  if (found.length > listedMost) list.append(make("li", "muted", `and ${found.length - listedMost} more`));
  return list;
}

function setList(sets) {
  const list = make("ul", "sets");
  sets.forEach(([parents, probability]) => {
    const line = make("li");
    const text = parents.length ? parents.map((parent) => names[parent]).join(", ") : "no parents";
    line.append(make("span", "", text), make("span", "number", probability.toFixed(3)));
    list.append(line);
  });
  return list;
}

function curveList(number) {
  const { missing, of, left, shown, all } = report.curves;
  const box = make("div");
  const curves = of[number];
  if (curves) {
    box.append(make("h3", "", "Fitted curves"));
    curves.forEach((curve) => box.append(curveChart(curve, names[number])));
    const rows = shown < all ? `${shown} of ${all} rows` : "the rows";
    box.append(make("p", "hint", `Line: the mean function; band: 90% of its probability; dots: ${rows}, less what other parents add.`));
  } else if (missing) {
    box.append(make("p", "hint", missing));
  } else if (left.includes(number)) {
    box.append(make("p", "hint", "Curves of this variable were left out; plot_curves in Python draws them."));
  }
  return box;
}

function chooseVariable(number) {
  byId("variable").value = String(number);
  markNode(number);
  const details = byId("details");
  details.replaceChildren(
    make("h3", "", "Parents"), neighbourList(neighbours(number, true)),
    curveList(number),
    make("h3", "", "Most probable parent sets"), setList(report.sets[number]),
    make("h3", "", "Children"), neighbourList(neighbours(number, false)),
  );
}

function showHint() {
  byId("details").replaceChildren(make("p", "hint", "Choose a variable here or in the network for its parents, children and curves."));
}

function startVariables() {
  showHint();
  const select = byId("variable");
  const none = make("option", "", "Choose a variable …");
  none.value = "";
  select.append(none, ...names.map((name, k) => {
    const option = make("option", "", name);
    option.value = String(k);
    return option;
  }));
  select.addEventListener("change", () => {
    if (select.value !== "") {
      chooseVariable(Number(select.value));
    } else {
      clearMarks();
      showHint();
    }
  });
}
