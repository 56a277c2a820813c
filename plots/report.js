// The report's script: it sorts and filters tables, and shows the values of plotted points. Without it, the page
// shows the tables in their first order, and browsers show the values as titles.
"use strict";

// A cell's sort key is its data-value, a number; cells without one are texts, or have no value and stay last.
function key(row, column) {
  const cell = row.cells[column];
  return cell.dataset.value !== undefined ? Number(cell.dataset.value)
    : cell.classList.contains("none") ? null : cell.textContent;
}

function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

function sort(table, heading) {
  const column = heading.cellIndex, body = table.tBodies[0];
  const order = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  const sign = order === "ascending" ? 1 : -1;
  const rows = Array.from(body.rows, row => ({row, key: key(row, column)}));
  rows.sort((a, b) => a.key === null || b.key === null ? (a.key === null) - (b.key === null)
    : sign * compare(a.key, b.key));
  for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", order);
  body.append(...rows.map(item => item.row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  for (const heading of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "sort";
    button.append(heading.firstChild);
    heading.prepend(button);
    button.addEventListener("click", () => sort(table, heading));
  }
}

// A form.filters names its table in data-table. A row stays if its name contains the input's text, and if its data
// have the value of each select.
function filter(form) {
  const rows = Array.from(document.getElementById(form.dataset.table).tBodies[0].rows);
  const text = form.querySelector("input").value.trim().toLowerCase();
  const selects = Array.from(form.querySelectorAll("select"));
  for (const row of rows) {
    row.hidden = !row.cells[0].textContent.toLowerCase().includes(text)
      || selects.some(select => select.value !== "" && row.dataset[select.name] !== select.value);
  }
  form.querySelector("output").textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length}`;
}

for (const form of document.querySelectorAll("form.filters")) {
  form.hidden = false;
  form.addEventListener("input", () => filter(form));
  form.addEventListener("submit", event => event.preventDefault());
  filter(form);
}

// Values of points: the titles of groups in plots move to one box, which appears at once and also when touched.
const tip = document.getElementById("tip");
for (const title of document.querySelectorAll(".plot g > title")) {
  title.parentNode.dataset.tip = title.textContent;
  title.parentNode.classList.add("value");
  title.remove();
}

function show(event) {
  const point = event.target.closest ? event.target.closest(".value") : null;
  tip.hidden = !point;
  if (!point) return;
  tip.textContent = point.dataset.tip;
  const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - tip.offsetWidth - 4);
  const below = event.clientY + 14, above = event.clientY - tip.offsetHeight - 10;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${below + tip.offsetHeight < document.documentElement.clientHeight ? below : above}px`;
}
document.addEventListener("pointermove", show);
document.addEventListener("pointerdown", show);
