// Puts what the server sends into the page. HTML comes from its templates, and nowhere else.
"use strict";
(() => {
  const root = document.documentElement;
  const { base, channel } = root.dataset;
  const worker = `${base}/worker.js`;
  let seq = Number(root.dataset.seq) || 0;
  const rules = { createHTML: (html) => html, createScriptURL: (url) => (url === worker ? url : "") };
  const policy = window.trustedTypes ? trustedTypes.createPolicy("cuggino-live", rules) : rules;
  const texts = {
    live: "",
    waiting: "The server does not answer; trying again.",
    ended: "The server has ended. Start it again, and open the link that it prints.",
    gone: "The files of this page were removed.",
    reload: "Much has happened. Reload the page.",
  };

  function parse(html) {
    const box = document.createElement("template");
    box.innerHTML = policy.createHTML(html);
    return box.content;
  }

  function show(state) {
    const place = document.getElementById("live");
    if (!place || ["gone", "reload"].includes(place.dataset.state)) return;
    place.dataset.state = state;
    root.toggleAttribute("data-stale", state !== "live"); // what it shows as running may have ended
    place.textContent = texts[state] ?? "";
  }

  const isAtEnd = (box) => box.scrollLeft + box.clientWidth >= box.scrollWidth - 8;
  const toEnd = (box) => { box.scrollLeft = box.scrollWidth; pin(box); };

  // The names of a chart's lanes stay in sight where the chart is wider than the screen.
  function pin(box) {
    const shape = box.querySelector("svg");
    if (!shape || !shape.clientWidth) return;
    const x = (box.scrollLeft * shape.viewBox.baseVal.width) / shape.clientWidth;
    for (const name of shape.querySelectorAll("text.lane")) name.setAttribute("x", x.toFixed(1));
  }

  // Changes what differs, and nothing else: what is unfolded, focused or written stays.
  function morph(old, fresh) {
    if (!fresh || old.isEqualNode(fresh)) return;
    if (old.nodeName !== fresh.nodeName || old.id !== fresh.id) return old.replaceWith(fresh);
    if (old.nodeType !== Node.ELEMENT_NODE) {
      old.data = fresh.data;
      return;
    }
    const own = ["open", "data-loaded"];
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !own.includes(name)) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    const isLoaded = old.hasAttribute("data-body") && old.closest("[data-loaded]");
    if (!isLoaded) morphChildren(old, fresh);
  }

  function morphChildren(old, fresh) {
    const after = [...fresh.childNodes];
    const ids = new Set(after.map((node) => node.id).filter(Boolean));
    for (const child of [...old.children]) if (child.id && !ids.has(child.id)) child.remove();
    const at = (place) => old.childNodes[place];
    after.forEach((node, place) => {
      // What has an id is found by it, and not moved if it need not be: it may have the focus.
      const known = node.id && [...old.children].find((child) => child.id === node.id);
      if (known) {
        while (at(place) !== known && at(place) && !at(place).id) at(place).remove();
        if (at(place) !== known) old.insertBefore(known, at(place) ?? null);
        morph(known, node);
      } else if (at(place) && !at(place).id) morph(at(place), node);
      else old.insertBefore(node, at(place) ?? null);
    });
    while (old.childNodes.length > after.length) old.lastChild.remove();
  }

  function put(template) {
    const target = document.getElementById(template.dataset.to);
    if (!target) return;
    const boxes = [target.closest("[data-end]"), ...target.querySelectorAll("[data-end]")];
    const follow = boxes.filter((box) => box && isAtEnd(box));
    const content = template.content;
    if (template.dataset.how === "append") {
      for (const child of [...content.children]) {
        if (child.id && document.getElementById(child.id)) child.remove();
      }
      target.append(content);
    } else if (template.dataset.how === "outer") morph(target, content.firstElementChild);
    else if (target.localName === "title") document.title = content.textContent;
    else morphChildren(target, content);
    const place = document.getElementById(template.dataset.to);
    if (place) for (const box of place.querySelectorAll("[data-end]")) follow.push(box);
    const charts = place ? place.querySelectorAll("[data-end]") : [];
    follow.filter((box) => box.isConnected).forEach(toEnd);
    charts.forEach(pin);
  }

  function isWriting() {
    const used = document.activeElement;
    return Boolean(used && used.matches("input,textarea,select") && used.value);
  }

  function receive({ state, kind, id, html }) {
    if (state) return show(state);
    if (id <= seq && kind !== "gone") return;
    if (id > seq) seq = id;
    if (kind === "html") {
      for (const template of parse(html).querySelectorAll("template[data-to]")) put(template);
      tick();
      document.dispatchEvent(new CustomEvent("cuggino:updated"));
    } else if (kind === "gone") show("gone");
    else if (kind === "reload") isWriting() ? show("reload") : location.reload();
    else if (kind === "bye") root.dataset.over = "";
  }

  function tick() {
    for (const place of document.querySelectorAll("time[data-since]")) {
      const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(place.dataset.since)) / 1000));
      if (Number.isNaN(seconds)) continue;
      const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
      const two = (number) => String(number).padStart(2, "0");
      const rest = two(seconds % 60);
      const text = hours ? `${hours}:${two(minutes)}:${rest}` : `${minutes}:${rest}`;
      if (place.textContent !== text) place.textContent = text;
    }
  }

  async function load(target) {
    const source = target.open && target.dataset.src;
    const body = source && target.querySelector("[data-body]");
    if (!body || target.dataset.loaded !== undefined) return;
    target.dataset.loaded = "";
    const answer = await fetch(source).catch(() => null);
    if (answer && answer.ok) body.replaceChildren(parse(await answer.text()));
    else {
      delete target.dataset.loaded;
      body.textContent = "This could not be loaded.";
    }
  }

  document.addEventListener("toggle", ({ target }) => load(target), true);
  document.addEventListener("scroll", ({ target }) => {
    if (target.matches?.("[data-end]")) pin(target);
  }, true);

  function shared() {
    const { port } = new SharedWorker(policy.createScriptURL(worker), { name: "cuggino" });
    port.onmessage = ({ data }) => receive(data);
    const join = () => port.postMessage({ join: { channel, seq } });
    join();
    addEventListener("pagehide", () => port.postMessage({ leave: true }));
    addEventListener("pageshow", (event) => { if (event.persisted) join(); });
  }

  // Without a shared worker every visible tab has a stream of its own.
  function single() {
    let source = null;
    const open = () => {
      source = new EventSource(`${base}/stream?after=${seq}&on=${encodeURIComponent(channel)}`);
      const hear = (kind) => ({ data, lastEventId }) =>
        receive({ kind, id: Number(lastEventId) || seq, html: data.slice(data.indexOf("\n") + 1) });
      source.onmessage = hear("html");
      for (const kind of ["reload", "gone", "bye"]) source.addEventListener(kind, hear(kind));
      source.onopen = () => show("live");
      source.addEventListener("end", () => show("ended"));
      source.onerror = () => show("waiting");
    };
    const change = () => {
      if (document.hidden && source) {
        source.close();
        source = null;
      } else if (!document.hidden && !source) open();
    };
    document.addEventListener("visibilitychange", change);
    change();
  }

  if (base === undefined || channel === undefined) return;
  document.querySelectorAll("[data-end]").forEach(toEnd);
  document.querySelectorAll("details[open][data-src]").forEach(load);
  tick();
  setInterval(tick, 1000);
  if (window.SharedWorker) shared();
  else single();
})();
