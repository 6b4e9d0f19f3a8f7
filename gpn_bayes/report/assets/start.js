// Start everything, once the page is there.
startTheme();
startQuestions();
startTable();
startVariables();
startNetwork();
startEffects();
if (report.trust.trace) {
  // As wide as there is room, so that its letters are as large as all others.
  byId("trace").append(traceChart(report.trust.trace, Math.min(720, byId("trace").clientWidth)));
}
