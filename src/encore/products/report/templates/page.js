"use strict";
// The page is whole without this: it adds sorting, filters, the whole chain of a number, and keys.

const byId = (id) => document.getElementById(id);

// Filters: a form leaves those items of its part that have all its words and chosen values.

function filter(form) {
  const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = [...form.querySelectorAll("select")].filter((list) => list.value);
  const items = [...byId(form.dataset.of).querySelectorAll(".item")];
  let count = 0;
  for (const item of items) {
    const text = words.length ? item.textContent.toLowerCase() : "";
    const fits = words.every((word) => text.includes(word)) && chosen.every((list) => item.dataset[list.name] === list.value);
    item.classList.toggle("off", !fits);
    count += fits;
  }
  form.querySelector("output").textContent = words.length || chosen.length ? `${count} of ${items.length} shown` : "";
}

const formOf = (node) => [...document.forms].find((form) => byId(form.dataset.of).contains(node));

// Sorting: a header that is clicked orders the rows by its column, clicked again the other way round.

const collator = new Intl.Collator("en", { numeric: true });
const keyOf = (row, place) => row.cells[place].dataset.key ?? row.cells[place].textContent.trim();

function sort(table, header) {
  const descending = header.ariaSort === "ascending";
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = [...body.rows].sort((one, other) =>
    (descending ? -1 : 1) * collator.compare(keyOf(one, header.cellIndex), keyOf(other, header.cellIndex)));
  body.append(...rows);
}

// The chain of artifacts that a panel's number was made from, by the links that each artifact's own panel has.

function chain(panel, seen) {
  const list = document.createElement("ul");
  for (const link of panel.querySelectorAll(":scope a.read, :scope a[data-role]")) {
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

function addChain(panel) {
  const inner = chain(panel, new Set([panel.id]));
  if (panel.querySelector(".chain") || !inner.children.length) return;
  const box = document.createElement("details");
  box.className = "chain";
  const title = document.createElement("summary");
  title.textContent = "The whole chain, down to the raw text";
  box.append(title, inner);
  panel.append(box);
}

// What the address names is shown: no filter leaves it out, its details are open, a panel has the focus.

function show() {
  const target = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const hidden = target.closest(".off");
  if (hidden) formOf(hidden).reset();
  const inner = target.matches("details, .claims .item") && (target.matches("details") ? target : target.querySelector("details"));
  if (inner) inner.open = true;
  if (target.closest("details")) target.closest("details").open = true;
  if (hidden || inner) target.scrollIntoView();
  if (!target.classList.contains("panel")) return;
  addChain(target);
  target.focus({ preventScroll: true });
}

for (const form of document.querySelectorAll("form.filter")) {
  form.hidden = false;
  form.addEventListener("input", () => filter(form));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => filter(form)));
}
for (const table of document.querySelectorAll("table.sortable")) {
  for (const header of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => sort(table, header));
  }
}
for (const link of document.querySelectorAll("a[data-choose]")) {
  link.addEventListener("click", () => {
    const [name, value] = link.dataset.choose.split("=");
    const form = formOf(byId("claims-table"));
    form.reset(); // which filters, once the value below is chosen
    form.elements[name].value = value;
  });
}
addEventListener("hashchange", show);
addEventListener("keydown", (event) => {
  const open = event.key === "Escape" && document.querySelector(".panel:target .close");
  if (open) open.click();
});
show();
