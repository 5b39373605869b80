// Relative times beside absolute ones. The server's clock counts, not the visitor's.
(() => {
  "use strict";
  const served = Date.parse(document.querySelector("meta[name=server-now]")?.content);
  // When the page came, not when it was ready: a slow one must not put what has just happened into the future.
  // Its age is by one clock only: the browser's time of origin doesn't follow when the visitor's clock is set.
  const now = performance.now();
  const came = Date.now() - (now - (performance.getEntriesByType("navigation")[0]?.responseStart || now));
  const skew = Number.isNaN(served) ? 0 : served - came;
  const UNITS = [["d", 86400], ["h", 3600], ["min", 60]];
  const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

  const span = (seconds) => {
    if (seconds < 60) return `${Math.floor(seconds)} s`;
    const i = UNITS.findIndex(([, size]) => seconds >= size);
    const [unit, size] = UNITS[i];
    const rest = UNITS[i + 1] && Math.floor((seconds % size) / UNITS[i + 1][1]);
    return `${Math.floor(seconds / size)} ${unit}${rest && seconds < size * 10 ? ` ${rest} ${UNITS[i + 1][0]}` : ""}`;
  };
  const draw = (el) => {
    const at = Date.parse(el.dateTime);
    const out = el.querySelector("[data-rel]");
    if (Number.isNaN(at) || !out) return;
    const left = (at - Date.now() - skew) / 1000;
    let text = left > 0 ? `in ${span(left)}` : `${span(-left)} ago`;
    if (Math.abs(left) < 2) text = "just now";
    if ("countdown" in el.dataset) {
      text = left > 0 ? `${span(left)} left` : `passed ${span(-left)} ago`;
      el.classList.toggle("soon", left > 0 && left < 3600);
      el.classList.toggle("past", left <= 0);
    }
    if (out.textContent !== text) out.textContent = text;
    if (!el.title) el.title = local.format(at);
  };
  const all = () => document.querySelectorAll("time[datetime]").forEach(draw);
  all();
  document.addEventListener("htmx:load", all);
  document.addEventListener("visibilitychange", () => document.hidden || all());
  // Every second only while something counts its last two minutes.
  let ticks = 0;
  setInterval(() => {
    if (document.hidden) return;
    ticks += 1;
    if (ticks % 15 === 0) all();
    else document.querySelectorAll("time[data-countdown]").forEach((el) => {
      if (Math.abs(Date.parse(el.dateTime) - Date.now() - skew) < 120000) draw(el);
    });
  }, 1000);
})();
