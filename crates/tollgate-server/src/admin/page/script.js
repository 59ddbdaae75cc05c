// Shows what changes every two seconds, and what needs the token. All markup comes from the service,
// which escapes each text.
"use strict";

const EVERY_MS = 2000;
const element = (id) => document.getElementById(id);
// The token stays in this tab, until it is closed.
let token = sessionStorage.getItem("tollgate-token");
let policyShown = null;
let isAsking = false;
let answeredAt = new Date();

async function ask(path, body) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const method = body === undefined ? "GET" : "POST";
  const options = { method, headers, body: body && JSON.stringify(body), cache: "no-store" };
  const answer = await fetch(path, options);
  const text = await answer.text();
  if (answer.ok) return text;
  let why = text;
  try { why = JSON.parse(text).error; } catch { /* It is not JSON. */ }
  throw Object.assign(new Error(why), { status: answer.status });
}

// Says what is amiss. The same text again would be read aloud again.
function say(what) {
  if (element("lost").textContent !== what) element("lost").textContent = what;
}

// Puts new content in place, and keeps the focus and the position of what is scrolled.
function show(target, html) {
  const regions = (root) => [...root.querySelectorAll(".wide, a")];
  const key = (region) => region.getAttribute("aria-label") || region.getAttribute("href");
  const before = new Map(regions(target).map((it) => [key(it), it.scrollLeft]));
  const focused = target.contains(document.activeElement) ? key(document.activeElement) : null;
  target.innerHTML = html;
  for (const region of regions(target)) {
    region.scrollLeft = before.get(key(region)) || 0;
    if (focused !== null && key(region) === focused) region.focus({ preventScroll: true });
  }
  for (const time of target.querySelectorAll("[data-at]")) {
    const at = new Date(1000 * time.dataset.at);
    const isToday = at.toDateString() === new Date().toDateString();
    const said = isToday ? at.toLocaleTimeString() : at.toLocaleString();
    time.textContent = `${said} (${time.textContent})`;
  }
}

// A text that is being selected would be lost.
const isSelecting = () => {
  const selection = getSelection();
  return !selection.isCollapsed && element("live").contains(selection.anchorNode);
};

async function refresh() {
  if (isAsking || document.hidden) return;
  const isPaused = element("pause").ariaPressed === "true";
  if (isPaused || isSelecting()) {
    const why = isPaused ? "Paused" : "Paused while text is selected";
    say(`${why}. The page shows ${answeredAt.toLocaleTimeString()}.`);
    return;
  }
  isAsking = true;
  const asked = token;
  try {
    show(element("live"), await ask("/page/live"));
    answeredAt = new Date();
    say("");
    const policy = document.querySelector("[data-policy]").dataset.policy;
    if (token && policy !== policyShown) {
      show(element("policy"), await ask("/page/policy"));
      policyShown = policy;
      element("explain").hidden = false;
      const hadFocus = element("token-form").contains(document.activeElement);
      element("token-form").hidden = true;
      if (hadFocus) element("policy-title").focus({ preventScroll: true });
    }
  } catch (error) {
    if (token && (error.status === 401 || error.status === 403)) {
      // If another one was given meanwhile, it is asked next.
      if (token === asked) forget(error.message);
    } else {
      const since = answeredAt.toLocaleTimeString();
      say(`The service has not answered since ${since}. What is shown may be old.`);
    }
  } finally {
    isAsking = false;
  }
}

function forget(why) {
  token = null;
  policyShown = null;
  sessionStorage.removeItem("tollgate-token");
  element("policy").replaceChildren();
  element("explained").replaceChildren();
  element("explain").hidden = true;
  element("token-form").hidden = false;
  element("token-error").textContent = why;
}

function begin() {
  const header = document.querySelector("header");
  const pause = document.createElement("button");
  Object.assign(pause, { id: "pause", type: "button", textContent: "Pause", ariaPressed: "false" });
  pause.addEventListener("click", () => {
    pause.ariaPressed = pause.ariaPressed === "true" ? "false" : "true";
    refresh();
  });
  const lost = document.createElement("p");
  Object.assign(lost, { id: "lost", role: "alert" });
  header.append(pause);
  header.after(lost);
  const form = element("token-form");
  if (form) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const given = element("token").value.trim();
      element("token").value = "";
      // A browser sends no header with it.
      if (!/^[\x21-\x7e]+$/.test(given)) {
        element("token-error").textContent = "The token has a letter that the page can't send.";
        return;
      }
      token = given;
      element("token-error").textContent = "";
      sessionStorage.setItem("tollgate-token", token);
      pause.ariaPressed = "false";
      refresh();
    });
    element("explain-form").addEventListener("submit", async (event) => {
      event.preventDefault();
      const lines = (id) => element(id).value.split("\n");
      const body = {
        method: element("method").value.trim(),
        url: element("url").value.trim(),
        from: element("from").value.trim(),
        headers: lines("headers"),
        facts: lines("facts"),
      };
      const explained = element("explained");
      try {
        show(explained, await ask("/page/explain", body));
      } catch (error) {
        explained.textContent = error.message;
      }
    });
  } else {
    token = null;
  }
  show(element("live"), element("live").innerHTML);
  refresh();
  setInterval(refresh, EVERY_MS);
  document.addEventListener("visibilitychange", refresh);
}

begin();
