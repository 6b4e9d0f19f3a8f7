// The box for questions: reads them as the command line does, and answers from the matrices.
const signs = ["->", "~>", "<", "-"];

const quotes = [['"', '"'], ["'", "'"], ["“", "”"]];

// A name without the quotation marks around it, unless they are part of it.
function unquoted(part) {
  const name = part.trim();
  const quoted = name.length > 2 && quotes.some(([first, last]) => name.startsWith(first) && name.endsWith(last));
  return quoted && !names.includes(name) ? name.slice(1, -1) : name;
}

// Every way to cut a text at a sign: an order at all places, all else at one.
function splits(text, sign, spaced) {
  const mark = spaced ? " " + sign + " " : sign;
  const parts = text.split(mark);
  const found = [];
  if (sign === "<" && parts.length > 2) found.push(parts.map(unquoted));
  for (let cut = 1; cut < parts.length; cut += 1) {
    found.push([unquoted(parts.slice(0, cut).join(mark)), unquoted(parts.slice(cut).join(mark))]);
  }
  return found.map((asked) => ({ sign, names: asked }));
}

function readings(text, spaced) {
  const known = new Set(names);
  const found = new Map();
  signs.forEach((sign) => splits(text, sign, spaced).forEach((reading) => {
    if (reading.names.every((name) => known.has(name))) found.set(sign + JSON.stringify(reading.names), reading);
  }));
  return [...found.values()];
}

// The question that a text asks, or a complaint; edges may be written as this page shows them.
function readQuestion(text) {
  const typed = text.replaceAll("→", "->");
  const found = readTyped(text);
  return found.complaint && typed !== text ? readTyped(typed) : found;
}

function readTyped(text) {
  for (const spaced of [true, false]) {
    const found = readings(text, spaced);
    if (found.length > 1) return { complaint: "A question must have one meaning; put spaces around the sign." };
    if (found.length === 1) {
      const repeats = new Set(found[0].names).size < found[0].names.length;
      return repeats ? { complaint: "A question names each variable once." } : found[0];
    }
  }
  return { complaint: complaintAbout(text) };
}

function complaintAbout(text) {
  const known = new Set(names);
  const tries = [[signs, true], [signs.filter((sign) => sign !== "-"), false]];
  for (const [tried, spaced] of tries) {
    for (const reading of tried.flatMap((sign) => splits(text, sign, spaced))) {
      const unknown = reading.names.find((name) => !known.has(name));
      if (reading.names.every((name) => name) && unknown !== undefined) return `No variable is called “${unknown}”.`;
    }
  }
  return "A question reads: a -> b, a ~> b, a - b or a < b.";
}

// What a question asks, in words, with its probability and what else is worth knowing.
function answerTo(question) {
  const [a, b] = question.names.map((name) => names.indexOf(name));
  const [from, to] = question.names;
  if (question.names.length > 2) {
    return { complaint: words.orders };
  }
  if (question.sign === "->") {
    return { words: `There is an edge ${from} → ${to}`, found: estimate(report.edges, a, b), beside: edgeBeside(a, b) };
  }
  if (question.sign === "~>") {
    const direct = `The edge itself: ${formatted(estimate(report.edges, a, b))}.`;
    return { words: `A directed path leads from ${from} to ${to}`, found: estimate(report.paths, a, b), beside: direct };
  }
  if (question.sign === "-") {
    const ways = `${arrow(a, b)} ${formatted(estimate(report.edges, a, b))}, ${arrow(b, a)} ${formatted(estimate(report.edges, b, a))}.`;
    return { words: `${from} and ${to} are joined, either way`, found: joinedEstimate(a, b), beside: ways };
  }
  const back = estimate(report.paths, b, a);
  return { words: `${from} can stand before ${to}: no path leads back`, found: { value: 1 - back.value, mcse: back.mcse }, beside: "" };
}

function edgeBeside(a, b) {
  return `The other way, ${arrow(b, a)}: ${formatted(estimate(report.edges, b, a))}. By any path: ${formatted(estimate(report.paths, a, b))}.`;
}

function showAnswer(text) {
  const box = byId("answer");
  const question = readQuestion(text.trim());
  const answer = question.complaint ? question : answerTo(question);
  box.replaceChildren();
  box.classList.toggle("refused", Boolean(answer.complaint));
  if (answer.complaint) {
    box.append(make("p", "", answer.complaint));
    return;
  }
  const value = make("p", "value", answer.found.value.toFixed(3));
  value.append(" ", make("small", "", errorWords(answer.found)));
  box.append(make("p", "", answer.words), value, make("p", "muted", answer.beside));
}

function startQuestions() {
  const input = byId("question");
  input.value = report.questions[0];
  // No form is ever sent: the frame of a notebook forbids it, even to the page's own scripts.
  byId("question-button").addEventListener("click", () => showAnswer(input.value));
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    showAnswer(input.value);
  });
  [...new Set(report.questions)].forEach((text) => {
    const example = make("button", "link", text);
    example.type = "button";
    example.addEventListener("click", () => {
      input.value = text;
      showAnswer(text);
    });
    byId("examples").append(example, " ");
  });
}
