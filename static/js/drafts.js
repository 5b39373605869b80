// What was typed and chosen in a form with data-draft="key" survives reloads, refusals and a crash of the tab
// until it was accepted (a 2xx answer to the form, or an element with data-draft-done="key" in
// a page), the person signs out, or a day has gone by.
(() => {
  "use strict";
  const TYPED = "textarea, input[type=text], input[type=number], input[type=email], input[type=url], input:not([type]), select, input[type=radio], input[type=checkbox]";
  const name = (key) => `draft:${document.body.dataset.user || ""}:${key}`;
  const fields = (form) => [...form.querySelectorAll(TYPED)].filter((field) => field.name && !field.hasAttribute("data-no-draft"));
  const chosen = (field) => field.type === "radio" || field.type === "checkbox";
  const key = (field) => (chosen(field) ? `${field.name}=${field.value}` : field.name);
  const now = (field) => (chosen(field) ? field.checked : field.value);
  const first = (field) => {
    if (chosen(field)) return field.defaultChecked;
    return field.matches("select") ? ([...field.options].find((option) => option.defaultSelected) ?? field.options[0])?.value : field.defaultValue;
  };
  const KEPT = 24 * 3600 * 1000;
  const mine = () => Object.keys(localStorage).filter((key) => key.startsWith("draft:"));
  const load = (key) => {
    try {
      const kept = JSON.parse(localStorage.getItem(name(key)));
      return kept && Date.now() - kept.at < KEPT ? kept.fields : {};
    } catch { return {}; }
  };
  const store = (key, fields) => {
    try {
      if (Object.keys(fields).length) localStorage.setItem(name(key), JSON.stringify({ at: Date.now(), fields }));
      else localStorage.removeItem(name(key));
    } catch { /* storage full or refused: the text is still in the field */ }
  };
  const tidy = (every = false) => {
    try {
      mine().filter((key) => every || !(Date.now() - JSON.parse(localStorage.getItem(key)).at < KEPT))
        .forEach((key) => localStorage.removeItem(key));
    } catch { /* storage refused: nothing is kept there */ }
  };
  const save = (form) => {
    const draft = {};
    for (const field of fields(form)) {
      if (now(field) !== first(field)) draft[key(field)] = { value: now(field), base: first(field) };
    }
    store(form.dataset.draft, draft);
  };
  const restore = (form) => {
    const draft = load(form.dataset.draft);
    for (const field of fields(form)) {
      const kept = draft[key(field)];
      // A prefilled field takes its draft back only if it still starts from the same text or choice.
      if (kept && now(field) === first(field) && (first(field) === "" || first(field) === kept.base)) {
        field[chosen(field) ? "checked" : "value"] = kept.value;
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }
    }
  };
  const sweep = (root) => {
    const all = (selector) => [...(root.matches?.(selector) ? [root] : []), ...root.querySelectorAll(selector)];
    all("[data-draft-done]").forEach((mark) => store(mark.dataset.draftDone, {}));
    all("form[data-draft]").forEach(restore);
  };

  document.addEventListener("input", (event) => {
    const form = event.target.closest?.("form[data-draft]");
    if (form) save(form);
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { requestConfig, xhr } = event.detail;
    const form = requestConfig?.elt.closest("form[data-draft]");
    if (form && requestConfig.verb !== "get" && xhr.status < 300) store(form.dataset.draft, {});
  });
  document.addEventListener("htmx:load", (event) => sweep(event.detail.elt));
  document.addEventListener("submit", (event) => {
    if (event.target.matches("[data-sign-out]")) tidy(true);
  });
  tidy();
  sweep(document);
})();
