(() => {
  "use strict";
  const say = (text) => document.dispatchEvent(new CustomEvent("app:announce", { detail: text }));
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.classList.add("done");
      button.title = "Copied";
      say("Copied");
    } catch {
      button.title = "This browser does not allow copying here";
      say(button.title);
    }
  });
})();
