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
  // Before the request, since the pressed button is disabled, and loses the focus, with it.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const active = document.activeElement;
    if (event.detail.requestConfig.verb === "get" || !active || active === document.body) return;
    const row = active.closest("[data-row]");
    const list = row?.parentElement;
    lost = { active, id: active.id, list, index: list ? [...list.children].indexOf(row) : -1 };
  });
  // An answer that leaves the form as it is (a banner, a toast, nothing) gives its button the focus back.
  document.addEventListener("htmx:afterRequest", (event) => {
    const { requestConfig, successful, xhr } = event.detail;
    if (!lost || requestConfig.verb === "get") return;
    if (successful && xhr.status !== 204 && xhr.getResponseHeader("HX-Retarget") !== "#banner") return;
    const { active } = lost;
    lost = null;
    if (active.isConnected && (!document.activeElement || document.activeElement === document.body)) active.focus();
  });
  const onward = (was, swapped) => {
    const rows = was.list?.isConnected ? [...was.list.children] : [];
    const found = swapped.querySelector("[aria-invalid=true], [data-focus]")
      || (was.id && document.getElementById(was.id))
      || rows[Math.min(was.index, rows.length - 1)]?.querySelector("a[href], button");
    if (found) return found;
    if (!swapped.isConnected) return document.querySelector("main h1");
    swapped.tabIndex = -1;
    return swapped;
  };
  document.addEventListener("htmx:afterSettle", (event) => {
    const { elt } = event.detail;
    const note = elt.matches("[data-announce]") ? elt : elt.querySelector("[data-announce]");
    if (note) announce(note.textContent);
    if (!lost || elt.closest("#toasts, #banner, .rail")) return;
    const active = document.activeElement;
    if (!active || active === document.body) onward(lost, elt)?.focus();
    lost = null;
  });
})();
