// The sentence of choices that asks: what, and of which two variables. It answers from the matrices.

// What a question asks, in words, with its probability and what else is worth knowing.
function answerTo(sign, a, b) {
  const [from, to] = [names[a], names[b]];
  if (sign === "->") {
    return { words: `There is an edge ${from} → ${to}`, found: estimate(report.edges, a, b), beside: edgeBeside(a, b) };
  }
  if (sign === "~>") {
    const direct = `The edge itself: ${formatted(estimate(report.edges, a, b))}.`;
    return { words: `A directed path leads from ${from} to ${to}`, found: estimate(report.paths, a, b), beside: direct };
  }
  if (sign === "-") {
    const ways = `${arrow(a, b)} ${formatted(estimate(report.edges, a, b))}, ${arrow(b, a)} ${formatted(estimate(report.edges, b, a))}.`;
    return { words: `${from} and ${to} are joined, either way`, found: joinedEstimate(a, b), beside: ways };
  }
  const back = estimate(report.paths, b, a);
  return { words: `${from} can stand before ${to}: no path leads back`, found: { value: 1 - back.value, mcse: back.mcse }, beside: "" };
}

function edgeBeside(a, b) {
  return `The other way, ${arrow(b, a)}: ${formatted(estimate(report.edges, b, a))}. By any path: ${formatted(estimate(report.paths, a, b))}.`;
}

function showAnswer() {
  const [first, second] = ["first", "second"].map((id) => Number(byId(id).value));
  if (first === second) {
    byId("answer").replaceChildren(make("p", "", "Choose two different variables."));
    return;
  }
  const answer = answerTo(byId("sign").value, first, second);
  const value = make("p", "value", answer.found.value.toFixed(3));
  value.append(" ", make("small", "", errorWords(answer.found)));
  byId("answer").replaceChildren(make("p", "", answer.words), value, make("p", "muted", answer.beside));
}

function askAbout({ sign, pair }) {
  byId("sign").value = sign;
  byId("first").value = String(pair[0]);
  byId("second").value = String(pair[1]);
  showAnswer();
}

function startQuestions() {
  ["first", "second"].forEach((id) => byId(id).append(...variableOptions(names.keys())));
  ["sign", "first", "second"].forEach((id) => byId(id).addEventListener("change", showAnswer));
  report.questions.forEach((question) => {
    const example = make("button", "link", question.text);
    example.type = "button";
    example.addEventListener("click", () => askAbout(question));
    byId("examples").append(example, " ");
  });
  askAbout(report.questions[0]);
}
