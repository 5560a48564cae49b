(() => {
  "use strict";
  const NAMES = {
    region: "region", low: "lowest score", high: "highest score", smallest: "smallest prediction", largest: "largest prediction", count: "rows", positives: "positive class",
    mean: "mean score", rate: "observed rate", value: "calibrated", lower: "lower limit", upper: "upper limit",
    error: "off by at least", radius: "within", factors: "rate / prediction",
  };
  const tip = document.getElementById("tip");
  const spoken = document.getElementById("spoken");
  let owner = null;
  let shownAt = 0;

  const hide = () => {
    owner?.querySelector(".halo").classList.remove("on");
    owner = null;
    tip.hidden = true;
  };
  const ring = (chart, item) => {
    const halo = chart.querySelector(".halo");
    halo.classList.toggle("on", !item.bar);
    halo.setAttribute("cx", item.x);
    halo.setAttribute("cy", item.y);
  };
  const show = (chart, item, aloud) => {
    if (owner && owner !== chart) { hide(); }
    owner = chart;
    shownAt = scrollY;
    tip.textContent = "";
    const said = [];
    const { verdict } = item.part.dataset;
    if (verdict) {
      const strong = document.createElement("strong");
      strong.textContent = verdict;
      tip.append(strong);
      said.push(verdict);
    }
    const list = document.createElement("dl");
    for (const [key, name] of Object.entries(NAMES)) {
      const value = item.part.dataset[key];
      if (!value) { continue; }
      const term = document.createElement("dt");
      const number = document.createElement("dd");
      term.textContent = name;
      number.textContent = value;
      list.append(term, number);
      said.push(`${name} ${value}`);
    }
    tip.append(list);
    tip.hidden = false;
    ring(chart, item);
    const at = new DOMPoint(item.x, item.y).matrixTransform(chart.getScreenCTM());
    const box = tip.getBoundingClientRect();
    const wide = document.documentElement.clientWidth;
    const high = document.documentElement.clientHeight;
    let left = at.x + 16;
    if (left + box.width > wide - 8) { left = at.x - 16 - box.width; }
    let top = at.y - box.height / 2;
    if (left < 8) {
      left = Math.max(8, Math.min(at.x - box.width / 2, wide - 8 - box.width));
      top = at.y + 20 + box.height > high ? at.y - 20 - box.height : at.y + 20;
    }
    tip.style.left = `${left}px`;
    tip.style.top = `${Math.max(8, Math.min(top, high - 8 - box.height))}px`;
    if (aloud) { spoken.textContent = said.join(", "); }
  };

  for (const chart of document.querySelectorAll(".chart")) {
    const marks = [...chart.querySelectorAll(".m")].map((part) => {
      part.querySelector("title")?.remove(); // the tip says more, and would be doubled
      const { e, f } = part.transform.baseVal.consolidate().matrix;
      return { part, x: e, y: f, bar: false };
    }).sort((a, b) => a.x - b.x);
    const bars = [...chart.querySelectorAll(".b")].map((part) => {
      const box = part.getBBox();
      return { part, x: box.x + box.width / 2, y: box.y, left: box.x, right: box.x + box.width, bar: true };
    });
    const split = chart.dataset.split ? Number(chart.dataset.split) : Infinity;
    let current = -1;

    const nearest = (event) => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
      if (point.y > split) {
        return bars.find((bar) => point.x >= bar.left - 0.6 && point.x <= bar.right + 0.6) ?? null;
      }
      let best = null;
      let least = 36;
      for (const mark of marks) {
        const distance = Math.hypot(mark.x - point.x, 0.35 * (mark.y - point.y));
        if (distance < least) { least = distance; best = mark; }
      }
      return best;
    };
    chart.addEventListener("pointermove", (event) => {
      const item = nearest(event);
      if (item) { show(chart, item, false); } else if (owner === chart) { hide(); }
    });
    chart.addEventListener("pointerdown", (event) => {
      const item = nearest(event);
      if (item) { show(chart, item, false); }
    });
    chart.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") { hide(); } });
    chart.addEventListener("blur", hide);
    chart.addEventListener("keydown", (event) => {
      const last = marks.length - 1;
      const next = {
        ArrowRight: Math.min(current + 1, last), ArrowUp: Math.min(current + 1, last),
        ArrowLeft: Math.max(current - 1, 0), ArrowDown: Math.max(current - 1, 0), Home: 0, End: last,
      }[event.key];
      if (event.key === "Escape") { hide(); return; }
      if (next === undefined || last < 0) { return; }
      event.preventDefault();
      current = next;
      show(chart, marks[current], true);
    });
  }
  const sortKey = (row, place) => {
    const text = row.cells[place].textContent.replace(/[,\u2007\u2008]/g, "").trim();
    const number = /[-\u2212]?\d+(\.\d+)?/.exec(text);
    return [text === "", number && place ? Number(number[0]) : text];
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    for (const head of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const order = head.ariaSort === "descending" ? "ascending" : "descending";
        const sign = order === "ascending" ? 1 : -1;
        const rows = [...body.rows].map((row) => [...sortKey(row, head.cellIndex), row]);
        // empty cells stay last
        rows.sort(([isEmpty, one], [otherIsEmpty, other]) => isEmpty - otherIsEmpty
          || sign * (typeof one === "number" && typeof other === "number"
            ? one - other : String(one).localeCompare(String(other))));
        body.append(...rows.map(([, , row]) => row));
        for (const each of table.tHead.rows[0].cells) { each.removeAttribute("aria-sort"); }
        head.ariaSort = order;
      });
    }
  }
  for (const part of document.querySelectorAll(".copy")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "screen";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(part.textContent);
        button.textContent = "Copied";
        spoken.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(part); // the reader copies it by hand
      }
    });
    part.after(button);
  }
  addEventListener("scroll", () => { if (owner && Math.abs(scrollY - shownAt) > 2) { hide(); } }, { passive: true });
  addEventListener("beforeprint", () => {
    hide();
    for (const fold of document.querySelectorAll("details")) {
      if (fold.querySelectorAll("tbody tr").length <= 200) { fold.open = true; }
    }
  });
})();
