// data-live="URL" asks whether anything is newer. 204: nothing. 200 on a list's bar: the
// bar's content ("4 new, show"). 200 on a card (data-live-card): the card as it is now,
// put in place at once unless somebody is in it; then a bar in [data-live-note] offers it.
(() => {
  "use strict";
  const timers = new WeakMap();

  const busy = (card) => card.matches(":hover") || card.contains(document.activeElement)
    || [...card.querySelectorAll("textarea, input:not([type=hidden])")].some((field) => (
      field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue));

  const show = (card, html) => {
    if (card.isConnected) window.htmx.swap(card, html, { swapStyle: "outerHTML" });
  };
  const offer = (card, html) => {
    const note = card.querySelector("[data-live-note]");
    if (!note) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "This changed while you were here. Show how it is now";
    button.addEventListener("click", () => show(card, html));
    note.classList.add("live-bar");
    note.replaceChildren(button);
    document.dispatchEvent(new CustomEvent("app:announce", { detail: button.textContent }));
  };
  const take = (el, html) => {
    if (!("liveCard" in el.dataset)) {
      if (el.innerHTML.trim() !== html.trim()) {
        el.innerHTML = html;
        document.dispatchEvent(new CustomEvent("app:announce", { detail: el.textContent }));
      }
      return true;
    }
    if (busy(el)) offer(el, html);
    else show(el, html);
    return false;
  };

  const ask = async (el) => {
    if (!el.isConnected) return;
    const every = Number(el.dataset.liveEvery || 15) * 1000;
    let wait = every;
    if (!document.hidden) {
      try {
        const answer = await fetch(el.dataset.live, { headers: { "HX-Request": "true", "X-Live": "1" }, credentials: "same-origin", cache: "no-store", redirect: "manual" });
        if (answer.headers.has("HX-Redirect") || answer.status === 401 || answer.type === "opaqueredirect") {
          document.dispatchEvent(new CustomEvent("app:signed-out"));
          return;
        }
        if (answer.status === 200 && !take(el, await answer.text())) return;
        if (answer.status === 403 || answer.status === 404) return;
        if (answer.status >= 500) wait = every * 4;
      } catch { wait = every * 4; }
    }
    plan(el, wait);
  };
  const plan = (el, wait) => {
    clearTimeout(timers.get(el));
    timers.set(el, setTimeout(ask, wait, el));
  };
  const start = (root) => {
    const found = [...(root.matches?.("[data-live]") ? [root] : []), ...root.querySelectorAll("[data-live]")];
    found.filter((el) => !timers.has(el)).forEach((el) => plan(el, Number(el.dataset.liveEvery || 15) * 1000));
  };
  document.addEventListener("htmx:load", (event) => start(event.detail.elt));
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) document.querySelectorAll("[data-live]").forEach((el) => plan(el, 0));
  });
  start(document);
})();
