// The page can be read without this: it adds the filter, and the selection in
// the timeline. It only reads what is on the page.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const rows = [...document.querySelectorAll(".row")];
  const drawn = new Map(); // anchor -> bar or mark
  for (const a of document.querySelectorAll(".bar, .mark")) drawn.set(a.getAttribute("href").slice(1), a);
  const arcs = [...document.querySelectorAll(".arcs .arc")];
  const bars = [...document.querySelectorAll(".bar")];
  const scroll = document.querySelector(".scroll");
  const chosen = $("chosen");

  // The selection.

  let marked = [];
  const mark = (el, name) => { if (el) { el.classList.add(name); marked.push([el, name]); } };

  function select(anchor) {
    for (const [el, name] of marked) el.classList.remove(name);
    marked = [];
    mark(drawn.get(anchor), "on");
    for (const arc of arcs) {
      const { from, to } = arc.dataset;
      if (from !== anchor && to !== anchor) continue;
      mark(arc, "on");
      mark(drawn.get(from === anchor ? to : from), "near");
    }
    tell(anchor);
  }

  // tell shows below the timeline what the list says of the selection.
  function tell(anchor) {
    const body = $(anchor);
    if (!chosen || !body) return;
    chosen.replaceChildren();
    const why = body.querySelector(".why");
    const p = document.createElement("p");
    p.textContent = why ? why.textContent : body.closest(".row").querySelector(".text").textContent;
    chosen.append(p);
    const chains = body.querySelector(why ? ".wakes" : ".led");
    if (chains) chosen.append(chains.cloneNode(true));
    const a = document.createElement("a");
    a.href = "#" + anchor;
    a.textContent = chosen.dataset.open;
    chosen.append(a);
    chosen.hidden = false;
  }

  function reveal(anchor) {
    const a = drawn.get(anchor);
    if (!a || !scroll) return;
    const box = a.querySelector("rect").getBoundingClientRect(), view = scroll.getBoundingClientRect();
    if (box.left < view.left || box.right > view.right) scroll.scrollLeft += box.left - view.left - view.width / 3;
  }

  for (const [anchor, a] of drawn) {
    a.addEventListener("click", (ev) => {
      if (ev.detail === 0 || ev.ctrlKey || ev.metaKey || ev.shiftKey) return; // the enter key follows the link
      ev.preventDefault();
      select(anchor);
    });
    a.addEventListener("dblclick", () => { location.hash = anchor; });
    a.addEventListener("focus", () => select(anchor));
  }
  for (const a of document.querySelectorAll(".strip a")) {
    a.addEventListener("click", (ev) => {
      ev.preventDefault();
      const anchor = a.getAttribute("href").slice(1);
      select(anchor);
      reveal(anchor);
    });
  }

  // One bar is in the tab order; the arrow keys go on from there.
  let current = bars[0];
  bars.forEach((a, i) => {
    a.setAttribute("tabindex", i ? "-1" : "0");
    a.addEventListener("focus", () => {
      current.setAttribute("tabindex", "-1");
      current = a;
      a.setAttribute("tabindex", "0");
    });
    a.addEventListener("keydown", (ev) => {
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: bars.length - 1 }[ev.key];
      if (to === undefined || !bars[to]) return;
      ev.preventDefault();
      bars[to].focus({ preventScroll: true });
      reveal(bars[to].getAttribute("href").slice(1));
    });
  });

  // A link into an entry opens it; opening one selects it.
  function follow() {
    const target = $(location.hash.slice(1));
    const row = target && target.closest(".row");
    if (!row) return;
    if (row.hidden) clear();
    const d = target.closest("details");
    if (d) d.open = true;
    row.scrollIntoView({ block: "center" });
    (row.querySelector("summary") || target).focus?.({ preventScroll: true });
    select(target.id);
    reveal(target.id);
  }
  addEventListener("hashchange", follow);
  for (const row of rows) {
    const d = row.querySelector("details");
    d?.querySelector("summary").addEventListener("click", () => {
      if (!d.open) select(d.querySelector(".body").id);
    });
  }

  // The filter.

  const form = document.querySelector(".filter");
  const text = $("f-text"), bad = $("f-bad"), writes = $("f-writes"), rec = $("f-rec"), count = $("f-count");
  const found = new Map(); // row -> its text, once it was asked for

  function textOf(row) {
    if (!found.has(row)) found.set(row, row.textContent.toLowerCase());
    return found.get(row);
  }

  function filter() {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let n = 0;
    for (const row of rows) {
      const pass = (!bad.checked || row.classList.contains("bad")) && (!writes.checked || row.classList.contains("writes")) &&
        (!rec.checked || row.classList.contains("rec")) && words.every((w) => textOf(row).includes(w));
      row.hidden = !pass;
      if (pass) n++;
      const anchor = row.querySelector("[id]")?.id;
      drawn.get(anchor)?.classList.toggle("off", !pass);
    }
    count.textContent = count.dataset.of.replace("{n}", n).replace("{all}", rows.length);
    const none = document.querySelector(".none");
    if (none) none.hidden = n > 0;
  }

  function clear() {
    text.value = "";
    bad.checked = writes.checked = rec.checked = false;
    filter();
  }

  const all = (open) => () => {
    for (const row of rows) if (!row.hidden) for (const d of row.children) if (d.tagName === "DETAILS") d.open = open;
  };
  form.hidden = false;
  form.addEventListener("submit", (ev) => ev.preventDefault());
  let timer = 0;
  text.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(filter, 120); });
  for (const box of [bad, writes, rec]) box.addEventListener("change", filter);
  $("b-open").addEventListener("click", all(true));
  $("b-close").addEventListener("click", all(false));
  addEventListener("keydown", (ev) => {
    if (ev.key !== "/" || ev.ctrlKey || ev.metaKey || ev.altKey || ev.target.matches("input")) return;
    ev.preventDefault();
    text.focus();
  });
  filter();
  if (location.hash) follow();
})();
