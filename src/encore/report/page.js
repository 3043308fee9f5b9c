"use strict";
// The page can be read without this: it only adds search, filters, the whole chain of a number, and keys.

const byId = (id) => document.getElementById(id);
const form = byId("filter");
const items = [...document.querySelectorAll(".item")].map((node) => ({
  node,
  text: node.textContent.toLowerCase(),
  rows: [...node.querySelectorAll("tr.row")].map((row) => ({ row, text: row.textContent.toLowerCase() })),
}));

function fits(item, words, chosen) {
  const { paper, state, verdict } = item.node.dataset;
  if (chosen.paper && paper !== chosen.paper) return false;
  if (chosen.state && state !== chosen.state) return false;
  if (chosen.verdict && !(verdict || "").split(" ").includes(chosen.verdict)) return false;
  return words.every((word) => item.text.includes(word));
}

// Of a table whose title has not all the words, only the rows that have them are shown.
function filterRows(item, words) {
  const hits = item.rows.filter((each) => words.every((word) => each.text.includes(word)));
  for (const each of item.rows) {
    each.row.classList.toggle("off", words.length > 0 && hits.length > 0 && !hits.includes(each));
  }
}

function filter() {
  const words = byId("q").value.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = Object.fromEntries(["paper", "state", "verdict"].map((key) => [key, byId(key).value]));
  let count = 0;
  for (const item of items) {
    const fit = fits(item, words, chosen);
    item.node.classList.toggle("off", !fit);
    if (fit) filterRows(item, words);
    count += fit;
  }
  const asked = words.length > 0 || Object.values(chosen).some(Boolean);
  byId("found").textContent = asked ? `${count} of ${items.length} shown` : "";
}

// The chain of artifacts behind a section, from the links that each artifact's own section has.
function chain(section, seen) {
  const list = document.createElement("ul");
  for (const link of section.querySelectorAll(":scope a.read, :scope a[data-role]")) {
    if (link.closest(".chain")) continue;
    const target = byId(link.hash.slice(1));
    const entry = document.createElement("li");
    const copy = document.createElement("a");
    copy.href = link.hash;
    copy.textContent = target.querySelector("h3").textContent.replace("results/", "");
    entry.append(`${link.dataset.role || "reads"}: ${target.dataset.stage} `, copy);
    if (seen.has(target.id)) entry.append(" (above)");
    else {
      seen.add(target.id);
      entry.append(chain(target, seen));
    }
    list.append(entry);
  }
  return list;
}

function explain() {
  const section = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
  if (section && section.tagName === "DETAILS") section.open = true;
  if (!section || !section.classList.contains("why")) return;
  if (!section.querySelector(".chain")) {
    const inner = chain(section, new Set([section.id]));
    if (inner.children.length) {
      const box = document.createElement("details");
      box.className = "chain";
      const title = document.createElement("summary");
      title.textContent = "The whole chain, down to the raw text";
      box.append(title, inner);
      section.append(box);
    }
  }
  section.focus({ preventScroll: true });
}

form.hidden = false;
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(filter));
addEventListener("hashchange", explain);
addEventListener("keydown", (event) => {
  const open = event.key === "Escape" && document.querySelector(".why:target .close");
  if (open) open.click();
});
explain();
