// data-live="URL" asks whether anything is newer. 204: nothing. 200 on a list's bar: the
// bar's content ("4 new, show"), and with it templates that replace counts elsewhere. 200 on a
// card (data-live-card): the card as it is now, put in place at once unless somebody is in
// its form, or it asks for a decision: what is to be decided never changes but at a click.
// Then a bar in [data-live-note] offers it, and a click shows how it is by then. What is below
// a card stays where it is, however tall the new one is. 403 or 404: the reader lost the right.
(() => {
  "use strict";
  const timers = new WeakMap();

  const announce = (text) => document.dispatchEvent(new CustomEvent("app:announce", { detail: text }));
  const typed = (field) => (field.type === "checkbox" || field.type === "radio"
    ? field.checked !== field.defaultChecked : field.value !== field.defaultValue);
  // Only what would be lost protects a card: typed text, the focus in a form, a press under way or about
  // to be made (the pointer on a form's button, or on any of a part that is marked as still).
  const busy = (card) => card.matches(":active, [data-live-still]:hover") || card.querySelector("form button:hover")
    || [...card.querySelectorAll("form")].some((form) => form.contains(document.activeElement))
    || [...card.querySelectorAll("form :is(textarea, input:not([type=hidden]))")].some(typed);

  const words = (el) => el.textContent.replace(/\s+/g, " ").trim();
  const said = (card) => [...card.querySelectorAll("[data-live-said] .what, [data-live-said]:not(:has(.what))")].map(words);
  const twin = (card, was) => (was.id && document.getElementById(was.id))
    || [...card.querySelectorAll(was.tagName)].find((el) => words(el) === words(was)) || card;
  const decidable = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content.querySelector("form.decide") !== null;
  };
  const top = (el) => el?.getBoundingClientRect().top ?? 0;
  // Keeps what follows a part where it was: a shorter one keeps the height of before, for a taller one the window scrolls on.
  const held = (card, swap) => {
    const { id, nextElementSibling: below } = card;
    const height = (el) => el.getBoundingClientRect().height;
    const [was, at] = [height(card), top(below)];
    swap();
    const now = document.getElementById(id);
    if (!now || !now.hasAttribute("data-live-still") || !below?.isConnected) return now;
    if (height(now) < was) now.style.minHeight = `${was}px`;
    const settle = () => window.scrollBy(0, top(below) - at);
    settle();
    requestAnimationFrame(settle);
    return now;
  };
  // The page's heading and title tell what its card tells.
  const head = (card) => {
    const heading = document.querySelector("main h1 > .untrusted");
    const { heading: text } = card.dataset;
    if (!text || !heading || heading.textContent === text) return;
    heading.textContent = text;
    document.title = [text, ...document.title.split(" · ").slice(-2)].join(" · ");
  };
  const show = (card, html) => {
    if (!card.isConnected) return;
    const active = card.contains(document.activeElement) ? document.activeElement : null;
    const open = [...card.querySelectorAll("details[open] > summary")].map(words);
    const before = said(card);
    const now = held(card, () => window.htmx.swap(card, html, { swapStyle: "outerHTML" }));
    if (!now) return;
    now.querySelectorAll("details > summary").forEach((summary) => {
      if (open.includes(words(summary))) summary.parentElement.open = true;
    });
    if (active) {
      const next = twin(now, active);
      if (next === now) now.tabIndex = -1;
      next.focus({ preventScroll: true });
    }
    const news = said(now).filter((text) => !before.includes(text));
    if (news.length) announce(news.join(". "));
  };
  const note = (card) => card.querySelector("[data-live-note]");
  const withdraw = (card) => note(card)?.replaceChildren();
  const offer = (card) => {
    const place = note(card);
    if (!place || place.firstElementChild) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn";
    button.textContent = "This changed while you were here. Show how it is now";
    button.addEventListener("click", () => ask(card, true));
    place.classList.add("live-bar");
    place.replaceChildren(button);
    announce(button.textContent);
  };
  const fill = (bar, html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    template.content.querySelectorAll("template[data-live-replace]").forEach((part) => {
      document.querySelector(part.dataset.liveReplace)?.replaceWith(part.content);
      part.remove();
    });
    if (words(bar) === words(template.content)) return;
    bar.replaceChildren(template.content);
    announce(words(bar));
  };
  const take = (el, html, wanted) => {
    if (!("liveCard" in el.dataset)) fill(el, html);
    else if (!wanted && (busy(el) || decidable(html))) offer(el);
    else show(el, html);
  };
  const same = (el) => {
    if ("liveCard" in el.dataset) withdraw(el);
    else el.replaceChildren();
  };
  const lost = (el) => {
    const banner = document.getElementById("banner");
    const source = document.getElementById("lost-template");
    el.querySelectorAll("form button").forEach((button) => { button.disabled = true; });
    if (banner && source && !banner.firstElementChild) banner.replaceChildren(source.content.cloneNode(true));
  };

  const ask = async (el, wanted = false) => {
    if (!el.isConnected) return;
    const every = Number(el.dataset.liveEvery || 15) * 1000;
    let wait = every;
    if (wanted || !document.hidden) {
      try {
        const answer = await fetch(el.dataset.live, { headers: { "HX-Request": "true", "X-Live": "1" }, credentials: "same-origin", cache: "no-store", redirect: "manual" });
        if (answer.headers.has("HX-Redirect") || answer.status === 401 || answer.type === "opaqueredirect") {
          document.dispatchEvent(new CustomEvent("app:signed-out"));
          return;
        }
        if (answer.status === 200) take(el, await answer.text(), wanted);
        if (answer.status === 204) same(el);
        if (answer.status === 403 || answer.status === 404) {
          lost(el);
          return;
        }
        if (answer.status >= 500) wait = every * 4;
      } catch {
        wait = every * 4;
        if (wanted) document.dispatchEvent(new CustomEvent("app:toast", { detail: "No connection to the server. What is shown is as it was." }));
      }
    }
    if (el.isConnected) plan(el, wait);
  };
  const plan = (el, wait) => {
    clearTimeout(timers.get(el));
    timers.set(el, setTimeout(ask, wait, el));
  };
  const start = (root) => {
    const found = [...(root.matches?.("[data-live]") ? [root] : []), ...root.querySelectorAll("[data-live]")];
    found.filter((el) => !timers.has(el)).forEach((el) => plan(el, Number(el.dataset.liveEvery || 15) * 1000));
  };
  document.addEventListener("htmx:load", (event) => {
    start(event.detail.elt);
    head(event.detail.elt);
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) document.querySelectorAll("[data-live]").forEach((el) => plan(el, 0));
  });
  start(document);
})();
