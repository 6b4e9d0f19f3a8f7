// Start everything, once the page is there.
startTheme();
if (byId("ask")) startQuestions();
startTable();
startVariables();
startNetwork();
if (byId("what-if")) startEffects();
// In the frame of a notebook, a link to a part of the page would open the notebook there, and nothing can be saved.
if (location.protocol === "about:") {
  byId("csv").hidden = true;
  document.querySelectorAll('a[href^="#"]').forEach((link) => link.addEventListener("click", (event) => {
    event.preventDefault();
    byId(link.getAttribute("href").slice(1)).scrollIntoView();
  }));
}
if (report.trust.trace) {
  // As wide as there is room, so that its letters are as large as all others.
  byId("trace").append(traceChart(report.trust.trace, Math.min(720, byId("trace").clientWidth)));
}
