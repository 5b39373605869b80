// Single keys move and open; none decides. They are off in fields, with modifiers, and for
// whoever turned them off.
(() => {
  "use strict";
  const enabled = () => {
    try { return localStorage.getItem("keys") !== "off"; } catch { return true; }
  };
  const sheet = document.getElementById("keys");
  const toggle = document.querySelector("[data-keys-toggle]");
  if (toggle) {
    toggle.checked = enabled();
    toggle.addEventListener("change", () => {
      try { localStorage.setItem("keys", toggle.checked ? "on" : "off"); } catch { /* not remembered */ }
    });
  }
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-dialog]");
    if (opener) document.getElementById(opener.dataset.dialog)?.showModal();
    document.querySelectorAll("details.menu[open]").forEach((menu) => {
      if (opener || !menu.contains(event.target)) menu.open = false;
    });
  });

  const step = (by) => {
    const links = [...document.querySelectorAll("[data-row] a[data-open]")];
    if (!links.length) return;
    const at = links.findIndex((link) => link.closest("[data-row]").contains(document.activeElement));
    const to = at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1);
    links[to].focus();
  };
  let going = 0;
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      const menu = document.querySelector("details.menu[open]");
      if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
      return;
    }
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !enabled()) return;
    if (event.target.closest("input, textarea, select, [contenteditable], dialog[open]")) return;
    const { key } = event;
    if (event.timeStamp < going) {
      going = 0;
      const link = [...document.querySelectorAll("[data-go]")].find((item) => item.dataset.go === key);
      if (link) { event.preventDefault(); location.assign(link.href); }
      return;
    }
    if (key === "g") { going = event.timeStamp + 1500; return; }
    const act = { j: () => step(1), k: () => step(-1), "?": () => sheet?.showModal(), "/": () => document.querySelector("[data-search]")?.focus() }[key];
    if (act) { event.preventDefault(); act(); }
  });
})();
