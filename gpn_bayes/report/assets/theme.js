// Light or dark: as the system has it, until the reader chooses.
const darkSystem = window.matchMedia("(prefers-color-scheme: dark)");
const themeWatchers = [];
let chosenTheme = null;

function theme() {
  return chosenTheme || (darkSystem.matches ? "dark" : "light");
}

function showTheme() {
  document.documentElement.dataset.theme = theme();
  byId("theme").textContent = theme() === "dark" ? "Light" : "Dark";
  themeWatchers.forEach((watcher) => watcher());
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

function startTheme() {
  darkSystem.addEventListener("change", showTheme);
  byId("theme").addEventListener("click", () => {
    chosenTheme = theme() === "dark" ? "light" : "dark";
    showTheme();
  });
  showTheme();
}
