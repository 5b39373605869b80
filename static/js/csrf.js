// The token is read from the cookie when a form is sent: signing in again in another
// tab rotates it, and the one in the page would then be refused.
(() => {
  "use strict";
  const FIELD = "csrfmiddlewaretoken";
  const token = () => {
    const pair = document.cookie.split("; ").find((part) => /^(__Host-|__Secure-)?resumeapp_csrf=/.test(part));
    return pair ? decodeURIComponent(pair.slice(pair.indexOf("=") + 1)) : "";
  };
  document.addEventListener("htmx:configRequest", (event) => {
    const value = token();
    if (!value || event.detail.verb === "get") return;
    // Django prefers the field to the header, so a stale field has to go.
    delete event.detail.parameters[FIELD];
    event.detail.headers["X-CSRFToken"] = value;
  });
  document.addEventListener("submit", (event) => {
    const field = event.target.elements.namedItem(FIELD);
    const value = token();
    if (field && value) field.value = value;
  }, true);
})();
