// One stream for all tabs of a browser, which has only six connections to a server.
"use strict";
const base = location.pathname.replace(/\/worker\.js$/, "");
const tabs = new Map(); // port -> {channel, seq}
let source = null;
let listed = ""; // the channels of the stream
let at = 0; // the position of its last message
let state = "waiting";
let again = 0;

function tell(message, channel) {
  for (const [port, tab] of tabs) {
    if (channel === undefined || tab.channel === channel) {
      if (message.id > tab.seq) tab.seq = message.id;
      port.postMessage(message);
    }
  }
}

function setState(now) {
  state = now;
  tell({ state });
}

function connect(after) {
  const channels = [...new Set([...tabs.values()].map((tab) => tab.channel))].sort();
  clearTimeout(again);
  if (source) source.close();
  source = null;
  listed = channels.join(" ");
  at = after;
  if (!channels.length) return;
  const query = channels.map((channel) => `&on=${encodeURIComponent(channel)}`).join("");
  const stream = new EventSource(`${base}/stream?after=${after}${query}`);
  source = stream;
  const receive = (kind) => (event) => {
    if (stream !== source) return;
    const id = Number(event.lastEventId) || at;
    if (id > at) at = id;
    const end = event.data.indexOf("\n");
    const channel = end < 0 ? event.data : event.data.slice(0, end);
    tell({ kind, id, html: end < 0 ? "" : event.data.slice(end + 1) }, channel);
  };
  stream.onmessage = receive("html");
  for (const kind of ["reload", "gone", "bye"]) stream.addEventListener(kind, receive(kind));
  stream.addEventListener("end", () => setState("ended"));
  stream.onopen = () => setState("live");
  stream.onerror = async () => {
    if (stream !== source) return;
    setState(state === "ended" ? "ended" : "waiting");
    if (stream.readyState !== EventSource.CLOSED) return; // it tries again by itself
    const answer = await fetch(`${base}/alive`).catch(() => null);
    if (stream !== source) return;
    if (answer && (answer.status === 401 || answer.status === 404)) setState("ended");
    else again = setTimeout(() => connect(at), 5000);
  };
}

function join(port, tab) {
  const first = !tabs.size;
  tabs.set(port, tab);
  const channels = [...new Set([...tabs.values()].map((known) => known.channel))].sort().join(" ");
  // A tab whose page is older than the stream needs what lies between; the others ignore it.
  if (first || !source || channels !== listed || tab.seq < at) {
    connect(first ? tab.seq : Math.min(at, tab.seq));
  }
  port.postMessage({ state });
}

onconnect = (event) => {
  const port = event.ports[0];
  port.onmessage = ({ data }) => {
    if (data.join) join(port, data.join);
    else {
      tabs.delete(port);
      if (!tabs.size) connect(at);
    }
  };
};
