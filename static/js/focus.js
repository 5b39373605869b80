// After a swap the focus goes on instead of falling back to the top, and the result is
// read out from a live region that is never swapped itself.
(() => {
  "use strict";
  const status = () => document.getElementById("status");
  const announce = (text) => {
    const region = status();
    if (!region) return;
    region.textContent = "";
    requestAnimationFrame(() => { region.textContent = text.replace(/\s+/g, " ").trim(); });
  };
  document.addEventListener("app:announce", (event) => announce(event.detail));

  let lost = null;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const active = document.activeElement;
    if (!event.detail.target.contains(active) || active === document.body) return;
    const row = active.closest("[data-row]");
    const list = row?.parentElement;
    lost = { id: active.id, list, index: list ? [...list.children].indexOf(row) : -1 };
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    const { elt } = event.detail;
    const note = elt.matches?.("[data-announce]") ? elt : elt.querySelector?.("[data-announce]");
    if (note) announce(note.textContent);
    if (!lost) return;
    const was = lost;
    lost = null;
    const active = document.activeElement;
    if (active && active !== document.body) return;
    const rows = was.list?.isConnected ? [...was.list.children] : [];
    const next = rows[Math.min(was.index, rows.length - 1)];
    const target = elt.querySelector?.("[aria-invalid=true], [data-focus]")
      || (was.id && document.getElementById(was.id))
      || next?.querySelector("a[href], button")
      || document.querySelector("main h1");
    target?.focus({ preventScroll: target.matches("h1") });
  });
})();
