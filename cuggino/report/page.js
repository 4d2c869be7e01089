"use strict";
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const data = (id) => JSON.parse(byId(id).textContent);

  // ---- Charts: colours are names of CSS variables, looked up when the figure is drawn.

  const figure = data("figure");

  function resolved(value, style) {
    if (typeof value === "string") {
      const name = /^var\((--[a-z]+)\)$/.exec(value);
      return name ? style.getPropertyValue(name[1]).trim() : value;
    }
    if (Array.isArray(value)) return value.map((item) => resolved(item, style));
    if (value && typeof value === "object") {
      return Object.fromEntries(
        Object.entries(value).map(([key, item]) => [key, resolved(item, style)]),
      );
    }
    return value;
  }

  async function draw() {
    if (!figure) return;
    const { data: traces, layout } = resolved(figure, getComputedStyle(root));
    const options = { displayModeBar: false, responsive: true, showTips: false };
    await Plotly.react(byId("chart"), traces, layout, options);
  }

  // ---- Events: rows [seq, local ms, stage, kind, event]; only those in view are in the page.

  const ROW = 26;
  const SPARE = 8;
  const { stages, kinds, rows } = data("events-data");
  const several = rows.length > 0 && day(rows[0][1]) !== day(rows[rows.length - 1][1]);
  const grid = byId("grid");
  const list = byId("rows");
  const detail = byId("detail");
  const search = byId("filter");
  const boxes = [...document.querySelectorAll('input[name="category"]')];
  const texts = new Array(rows.length);
  let found = [];
  let selected = -1;

  function day(ms) {
    return new Date(ms).toISOString().slice(0, 10);
  }

  function time(ms) {
    const iso = new Date(ms).toISOString();
    return several ? `${iso.slice(5, 10)} ${iso.slice(11, 19)}` : iso.slice(11, 23);
  }

  function fields(event) {
    return Object.entries(event).filter(([key]) => key !== "_tag");
  }

  function words(value) {
    if (value === null || value === undefined) return "";
    if (typeof value !== "object") return String(value);
    return Object.entries(value)
      .map(([key, item]) => (Array.isArray(value) ? words(item) : `${key} ${words(item)}`))
      .join(" ");
  }

  /** What the filter looks at: sequence number, stage, kind and all that the event holds. */
  function text(index) {
    if (texts[index] === undefined) {
      const [seq, , stage, kind, event] = rows[index];
      const held = fields(event).map(([, value]) => words(value));
      texts[index] = [`#${seq}`, stages[stage] ?? "", kinds[kind][0], ...held].join(" ").toLowerCase();
    }
    return texts[index];
  }

  const IDS = new Set(["id", "message_id", "parent_tool_use_id", "session_id"]);

  /** The event in one line, without what only pairs it with others. */
  function summary(event) {
    const shown = [];
    for (const [key, value] of fields(event)) {
      if (value === null || value === "" || value === false || IDS.has(key)) continue;
      if (key === "name" && event._tag === "ToolResult") continue;
      const said = words(value).replace(/\s+/g, " ").slice(0, 300);
      shown.push(typeof value === "string" ? said : `${key}: ${said}`);
    }
    return shown.join(" · ").slice(0, 400);
  }

  function update() {
    const asked = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const kindWanted = kinds.map(([, category]) => wanted.has(category));
    found = [];
    for (let index = 0; index < rows.length; index++) {
      if (!kindWanted[rows[index][3]]) continue;
      if (asked.every((word) => text(index).includes(word))) found.push(index);
    }
    const count = (n) => n.toLocaleString("en");
    byId("status").textContent = `${count(found.length)} of ${count(rows.length)} events`;
    list.style.height = `${found.length * ROW}px`;
    show();
  }

  function cell(name, content) {
    const span = document.createElement("span");
    span.className = name;
    span.textContent = content;
    return span;
  }

  function show() {
    const first = Math.max(0, Math.floor(grid.scrollTop / ROW) - SPARE);
    const last = Math.min(found.length, first + Math.ceil(grid.clientHeight / ROW) + 2 * SPARE);
    const shown = [];
    for (let place = first; place < last; place++) {
      const index = found[place];
      const [seq, ms, stage, kind, event] = rows[index];
      const row = document.createElement("div");
      row.style.top = `${place * ROW}px`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", String(index === selected));
      row.setAttribute("aria-posinset", String(place + 1));
      row.setAttribute("aria-setsize", String(found.length));
      row.dataset.index = index;
      row.append(
        cell("seq", seq),
        cell("time", time(ms)),
        cell("stage", stages[stage] ?? ""),
        cell("kind", kinds[kind][0]),
        cell("said", summary(event)),
      );
      shown.push(row);
    }
    list.replaceChildren(...shown);
  }

  function select(index) {
    selected = index;
    detail.hidden = index < 0;
    if (index >= 0) {
      const [seq, ms, stage, kind, event] = rows[index];
      const terms = document.createElement("dl");
      const add = (name, content) => {
        const term = document.createElement("dt");
        const value = document.createElement("dd");
        term.textContent = name;
        value.textContent = content;
        terms.append(term, value);
      };
      const where = stages[stage] ? `, ${stages[stage]}` : "";
      add(`#${seq}, ${day(ms)} ${new Date(ms).toISOString().slice(11, 23)}${where}`, kinds[kind][0]);
      for (const [key, value] of fields(event)) {
        if (value === null || value === "") continue;
        add(key, typeof value === "string" ? value : JSON.stringify(value, null, 2));
      }
      detail.replaceChildren(terms);
      detail.scrollTop = 0;
    }
    show();
  }

  function move(step) {
    const place = found.indexOf(selected);
    const next = Math.min(found.length - 1, Math.max(0, place < 0 ? 0 : place + step));
    if (found.length === 0) return;
    const top = next * ROW;
    if (top < grid.scrollTop) grid.scrollTop = top;
    if (top + ROW > grid.scrollTop + grid.clientHeight) {
      grid.scrollTop = top + ROW - grid.clientHeight;
    }
    select(found[next]);
  }

  // ---- The fragment: #filter=words&categories=agent,tool&event=12, so that a view is a link.

  function read() {
    const asked = new URLSearchParams(location.hash.slice(1));
    search.value = asked.get("filter") ?? "";
    const wanted = asked.get("categories");
    for (const box of boxes) {
      box.checked = wanted === null ? box.defaultChecked : wanted.split(",").includes(box.value);
    }
    const seq = Number(asked.get("event") ?? NaN);
    update();
    selected = rows.findIndex((row) => row[0] === seq);
    const place = found.indexOf(selected);
    if (place >= 0) grid.scrollTop = place * ROW - grid.clientHeight / 3;
    select(selected);
  }

  function write() {
    const said = new URLSearchParams();
    if (search.value) said.set("filter", search.value);
    if (boxes.some((box) => box.checked !== box.defaultChecked)) {
      const wanted = boxes.filter((box) => box.checked).map((box) => box.value);
      said.set("categories", wanted.join(","));
    }
    if (selected >= 0) said.set("event", rows[selected][0]);
    try {
      history.replaceState(null, "", `#${said}`);
    } catch {
      // A page from a file may not be allowed to; then only the link is missing.
    }
  }

  let pending = 0;
  search.addEventListener("input", () => {
    clearTimeout(pending);
    pending = setTimeout(() => {
      grid.scrollTop = 0;
      update();
      write();
    }, 120);
  });
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  for (const box of boxes) {
    box.addEventListener("change", () => {
      update();
      write();
    });
  }
  grid.addEventListener("scroll", () => requestAnimationFrame(show), { passive: true });
  list.addEventListener("click", (event) => {
    const row = event.target.closest("[data-index]");
    if (!row) return;
    select(Number(row.dataset.index));
    write();
  });
  grid.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    move(step);
    write();
  });
  window.addEventListener("hashchange", read);
  window.addEventListener("resize", show);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  read();
  draw().then(
    () => { root.dataset.state = "ready"; },
    (error) => {
      root.dataset.state = "failed";
      console.error(error);
    },
  );
})();
