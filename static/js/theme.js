// Loaded before the styles so that the page never flashes in the other theme.
(() => {
  "use strict";
  const NAMES = ["system", "light", "dark"];
  const root = document.documentElement;
  const read = () => {
    try { return localStorage.getItem("theme") || "system"; } catch { return "system"; }
  };
  const apply = (name) => {
    if (name === "system") delete root.dataset.theme;
    else root.dataset.theme = name;
    document.querySelectorAll("[data-theme-name]").forEach((el) => { el.textContent = name; });
  };
  apply(read());
  document.addEventListener("DOMContentLoaded", () => apply(read()));
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    const next = NAMES[(NAMES.indexOf(read()) + 1) % NAMES.length];
    try { localStorage.setItem("theme", next); } catch { /* private mode: the choice lasts for this page */ }
    apply(next);
  });
})();
