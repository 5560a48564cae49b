"use strict";
(() => {
  const footer = document.querySelector("footer[data-events]");
  const said = document.getElementById("live");
  let busy = false;
  let again = false;

  async function renew() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        exchange(page.getElementById("main"));
        say("Renewed " + new Date().toLocaleTimeString() + ".", false);
      }
    } catch {
      say("The service does not answer; this page may be old.", true);
    }
    busy = false;
    if (again) {
      again = false;
      renew();
    }
  }

  // keep the focus where it was, so that the keyboard can be used while events arrive
  function exchange(main) {
    const old = document.getElementById("main");
    const links = (part) => [...part.querySelectorAll("a, summary, [tabindex]")];
    const place = links(old).indexOf(document.activeElement);
    const open = [...old.querySelectorAll("details")].map((one) => one.open);
    old.replaceWith(main);
    main.querySelectorAll("details").forEach((one, number) => { one.open = open[number] ?? false; });
    if (place >= 0) links(main)[place]?.focus({ preventScroll: true });
  }

  function say(text, away) {
    said.textContent = text;
    said.classList.toggle("away", away);
  }

  let first = true;
  const events = new EventSource(footer.dataset.events);
  events.addEventListener("change", () => {
    if (!first) renew();
    first = false;
  });
  events.addEventListener("error", () => say("The service does not answer; this page may be old.", true));
})();
