// Keeps an open page up to date: the server says that something changed, the page is fetched anew and its live part
// put in place of the old one. Also filters that apply while one types, keys and copy buttons. Every page works without.
"use strict";

(() => {
  const PAUSE = 1000;
  const RETRY = [2000, 30000];
  const SILENCE = 40000; // the server gives a sign of life every 15 seconds
  const connection = document.getElementById("connection");
  const follows = document.body.dataset.follow === "yes";
  const shown = { revision: -1, who: "" };
  let latest = null;
  let timer = 0;
  let fetching = false;
  let again = false;
  let lost = false;
  let heard = new Date();
  let source = null;
  let retry = RETRY[0];

  const clock = (moment) => moment.toLocaleTimeString([], { hour12: false });

  function tell(text, stale) {
    connection.hidden = !text;
    connection.classList.toggle("stale", stale);
    if (connection.textContent !== text) connection.textContent = text;
  }

  function stale() {
    if (!lost) {
      lost = true;
      tell(`Connection lost: stale since ${clock(heard)}. Trying again …`, true);
    }
  }

  function alive() {
    heard = new Date();
    retry = RETRY[0];
    if (lost) {
      lost = false;
      tell("Connected again.", false);
    }
  }

  function read(live) {
    shown.revision = Number(live.dataset.revision);
    shown.who = who(live.dataset);
  }

  // Which process answers, and who leads: other than the revision they say nothing of older or newer.
  const who = (state) => [state.identity, state.leads, state.leader, state.ready].join("\n");

  function isBehind() {
    return latest !== null && (latest.revision > shown.revision || who(latest) !== shown.who);
  }

  function schedule(milliseconds) {
    if (!timer && !fetching && !document.hidden) timer = setTimeout(refresh, milliseconds);
  }

  // What the reader is at: the element with the focus, found again by its id or address, and what was folded.
  function marked(live) {
    const focused = live.contains(document.activeElement) ? document.activeElement : null;
    return {
      id: focused && focused.id,
      href: focused && focused.getAttribute("href"),
      label: focused && focused.getAttribute("aria-label"),
      folds: new Map([...live.querySelectorAll("details[id]")].map((each) => [each.id, each.open])),
    };
  }

  function restore(live, mark) {
    for (const each of live.querySelectorAll("details[id]")) {
      if (mark.folds.has(each.id)) each.open = mark.folds.get(each.id);
    }
    const by = (name, value) => value && live.querySelector(`[${name}="${CSS.escape(value)}"]`);
    const found = by("id", mark.id) || by("href", mark.href) || by("aria-label", mark.label);
    if (found) found.focus({ preventScroll: true });
  }

  // Numbers beside the pages, and the tab: outside of what is replaced, so that the focus stays.
  function frame(whole) {
    document.title = whole.title;
    document.querySelector("link[rel=icon]").href = whole.querySelector("link[rel=icon]").href;
    const nav = document.getElementById("nav");
    const fresh = whole.getElementById("nav");
    if (nav.innerHTML !== fresh.innerHTML) {
      const mark = marked(nav);
      nav.replaceWith(fresh);
      restore(fresh, mark);
    }
  }

  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

  // As the server writes them; see look.py.
  function relative(moment, now) {
    const seconds = Math.round((now - moment) / 1000);
    const [size, unit] = UNITS.find(([size]) => Math.abs(seconds) >= size) || [1, "s"];
    const number = Math.floor(Math.abs(seconds) / size);
    const words = unit === "d" ? (number === 1 ? "1 day" : `${number} days`) : `${number} ${unit}`;
    return { text: words, ahead: seconds < 0 };
  }

  function age() {
    for (const each of document.querySelectorAll("time[datetime]")) {
      const { text, ahead } = relative(new Date(each.dateTime), new Date());
      const shown = each.dataset.bare === undefined ? (ahead ? `in ${text}` : `${text} ago`) : text;
      if (each.textContent !== shown) each.textContent = shown;
    }
  }

  async function refresh() {
    timer = 0;
    if (fetching) {
      again = true; // the address has changed meanwhile
      return;
    }
    fetching = true;
    try {
      const reply = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-cache" });
      const whole = new DOMParser().parseFromString(await reply.text(), "text/html");
      const fresh = whole.getElementById("live");
      const old = document.getElementById("live");
      if (fresh) {
        if (fresh.innerHTML !== old.innerHTML) {
          const mark = marked(old);
          old.replaceWith(fresh);
          restore(fresh, mark);
          prepare(fresh);
        } else {
          Object.assign(old.dataset, fresh.dataset);
        }
        read(document.getElementById("live"));
        frame(whole);
      }
    } catch {
      // The stream of events shows whether the connection is lost.
    } finally {
      fetching = false;
      if (again) {
        again = false;
        refresh();
      } else if (!lost && isBehind()) {
        schedule(PAUSE);
      }
    }
  }

  function follow() {
    source = new EventSource("/status/events");
    source.addEventListener("open", alive);
    source.addEventListener("alive", alive);
    source.addEventListener("changed", (event) => {
      alive();
      latest = JSON.parse(event.data);
      if (follows && isBehind()) schedule(0);
    });
    source.addEventListener("error", () => {
      stale();
      if (source.readyState === EventSource.CLOSED) {
        setTimeout(follow, retry);
        retry = Math.min(2 * retry, RETRY[1]);
      }
    });
  }

  async function copy(button) {
    const text = document.getElementById(button.dataset.copy);
    const said = button.parentElement.querySelector("[role=status]");
    try {
      await navigator.clipboard.writeText(text.textContent);
      said.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(text);
      said.textContent = "Selected: copy it with the keyboard.";
    }
  }

  function prepare(live) {
    for (const button of live.querySelectorAll("button[data-copy]")) {
      button.parentElement.hidden = false;
      button.addEventListener("click", () => copy(button));
    }
  }

  // A list is filtered while one types: the address has the filter, and the live part is fetched again.
  const TYPING = 250;
  const filter = document.getElementById("filter");
  let typing = 0;
  let edited = false;

  function address() {
    const query = new URLSearchParams([...new FormData(filter)].filter(([, value]) => value));
    return query.size ? `${filter.action}?${query}` : filter.action;
  }

  function apply() {
    typing = 0;
    if (address() === location.href) return;
    // One step back returns to the list before the edit.
    history[edited ? "replaceState" : "pushState"](null, "", address());
    edited = true;
    clearTimeout(timer);
    refresh();
  }

  if (filter) {
    filter.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(apply, TYPING);
    });
    filter.addEventListener("submit", () => clearTimeout(typing));
    filter.querySelector("button").hidden = true; // Enter works as well
    addEventListener("popstate", () => edited && location.reload());
  }

  // Keys: "/" filters or searches, "g" and a letter opens a page, "?" shows them.
  const CHORD = 1500;
  let chord = 0;

  function press(event) {
    const dialog = document.getElementById("keys");
    const busy = event.target.closest("input, textarea, select, [contenteditable]") || dialog.open;
    if (busy || event.ctrlKey || event.metaKey || event.altKey) return;
    const follows = Date.now() - chord < CHORD;
    chord = event.key === "g" && !follows ? Date.now() : 0;
    const page = follows && document.querySelector(`#nav a[data-key="${CSS.escape(event.key)}"]`);
    if (page) {
      page.click();
    } else if (event.key === "/") {
      event.preventDefault();
      (document.getElementById("q") ?? document.getElementById("find")).focus();
    } else if (event.key === "?") {
      dialog.showModal();
    }
  }

  document.addEventListener("keydown", press);
  document.querySelector("#nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

  const live = document.getElementById("live");
  document.getElementById("reload").hidden = true;
  document.getElementById("hint").hidden = false;
  prepare(live);
  read(live);
  follow();
  setInterval(age, 5000);
  setInterval(() => new Date() - heard > SILENCE && stale(), 5000);
  document.addEventListener("visibilitychange", () => follows && isBehind() && schedule(0));
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => event.persisted && location.reload());
})();
