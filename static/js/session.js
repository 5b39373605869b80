// What the person is told when an answer isn't one: signed out, server trouble, no network.
(() => {
  "use strict";
  let last = null;

  const toast = (text, level = "error") => {
    const region = document.getElementById("toasts");
    const source = document.getElementById("toast-template");
    if (!region || !source) return;
    const node = source.content.firstElementChild.cloneNode(true);
    node.dataset.toast = level;
    node.querySelector("p").textContent = text;
    region.append(node);
  };
  // A notice leaves by itself once it can have been read; trouble stays until it is dismissed.
  const STAYS = 8000;
  const leave = (node) => {
    let timer = 0;
    const stop = () => clearTimeout(timer);
    const wait = () => {
      stop();
      timer = setTimeout(() => (node.matches(":hover, :focus-within") ? wait() : node.remove()), STAYS);
    };
    ["pointerenter", "focusin"].forEach((name) => node.addEventListener(name, stop));
    ["pointerleave", "focusout"].forEach((name) => node.addEventListener(name, wait));
    wait();
  };
  const arrive = (node) => {
    const text = node.querySelector("p")?.textContent;
    [...node.parentElement.querySelectorAll(".toast")]
      .filter((other) => other !== node && other.querySelector("p")?.textContent === text)
      .forEach((other) => other.remove());
    if (node.dataset.toast !== "error") leave(node);
  };
  const region = document.getElementById("toasts");
  if (region) {
    new MutationObserver((changes) => changes.flatMap((change) => [...change.addedNodes])
      .filter((node) => node.isConnected && node.matches?.(".toast")).forEach(arrive)).observe(region, { childList: true });
  }
  const signedOut = () => {
    const banner = document.getElementById("banner");
    const source = document.getElementById("signed-out-template");
    if (!banner || !source) return;
    banner.replaceChildren(source.content.cloneNode(true));
    banner.querySelector("[data-retry]").hidden = !last;
  };
  document.addEventListener("app:signed-out", signedOut);
  document.addEventListener("app:toast", (event) => toast(event.detail));

  document.addEventListener("htmx:beforeRequest", (event) => {
    const config = event.detail.requestConfig;
    if (config.verb === "get") return;
    const form = event.detail.elt.closest("form");
    last = form && { form, submitter: config.triggeringEvent?.submitter ?? null };
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const { requestConfig, xhr } = event.detail;
    // A refusal that swaps counts as successful for htmx; one that fills the banner keeps it.
    if (requestConfig.verb === "get" || !event.detail.successful || xhr.getResponseHeader("HX-Retarget") === "#banner") return;
    document.getElementById("banner")?.replaceChildren();
    last = null;
  });
  document.addEventListener("htmx:responseError", (event) => {
    const status = event.detail.xhr.status;
    if (status === 401) signedOut();
    else if (status === 429) toast("Too many requests at once. Nothing was saved; wait a moment and send it again.");
    else toast(`The server could not complete this (${status}). Reload to see whether it was saved before you send it again.`);
  });
  document.addEventListener("htmx:sendError", () => toast("No connection to the server. What you typed is still here."));
  document.addEventListener("htmx:timeout", () => toast("The server did not answer in time. Reload to see whether it was saved before you send it again."));

  document.addEventListener("click", (event) => {
    const dismiss = event.target.closest("[data-dismiss]");
    if (dismiss) dismiss.closest(dismiss.dataset.dismiss)?.remove();
    if (event.target.closest("[data-retry]") && last?.form.isConnected) {
      const { form, submitter } = last;
      // htmx learns which answer was given from the click, not from the submit event.
      if (submitter?.isConnected) submitter.click();
      else form.requestSubmit();
    }
  });
})();
