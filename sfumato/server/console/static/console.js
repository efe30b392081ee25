/* The console's own script: sliders, completion and charts. It computes no price and no error: those come from pages. */
"use strict";

const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const digits = (x) => String(Number(x.toPrecision(3)));

/* ---- the two dials: the one that was moved asks, and the preview moves the other ---- */

function dials() {
  for (const name of ["epsilon", "error"]) {
    const slider = one(`#${name}-slider`), text = one(`#${name}`), chosen = one(`[name=by][value=${name}]`);
    slider.addEventListener("input", () => { text.value = digits(10 ** slider.value); chosen.checked = true; });
    text.addEventListener("input", () => { follow(name, Number(text.value)); chosen.checked = true; });
    chosen.addEventListener("input", () => { if (!text.value) text.value = digits(10 ** slider.value); });
  }
}

function follow(name, value) {
  if (value > 0) one(`#${name}-slider`).value = Math.log10(value);
}

function afterPreview() {
  const preview = one("#preview .preview"), by = one("[name=by]:checked");
  if (!preview || !by) return;
  const other = by.value === "epsilon" ? "error" : "epsilon", value = Number(preview.dataset[other]);
  one(`#${other}`).value = value > 0 ? digits(value) : "";  // empty: it depends on private numbers
  follow(other, value);
}

/* ---- the editor: names from the catalogue complete the word that is being written ---- */

function editor() {
  const sql = one("#sql"), form = one("#question"), offered = one("#completions");
  const names = [...new Set(all("[data-insert]").map((b) => b.dataset.insert)),
    "SELECT", "COUNT(*)", "COUNT(DISTINCT ", "SUM(", "AVG(", "FROM", "WHERE", "GROUP BY", "BETWEEN"];
  const changed = () => form.dispatchEvent(new Event("filled"));
  const word = () => /[\p{L}\p{N}_]*$/u.exec(sql.value.slice(0, sql.selectionStart))[0];
  const insert = (text, back = 0) => {
    sql.setRangeText(text, sql.selectionStart - back, sql.selectionEnd, "end");
    sql.focus(); offered.replaceChildren(); changed();
  };
  sql.addEventListener("input", () => {
    const begun = word(), matches = names.filter((n) => begun && n !== begun && n.toLowerCase().startsWith(begun.toLowerCase()));
    offered.replaceChildren(...matches.slice(0, 6).map((name) => {
      const button = document.createElement("button");
      button.type = "button"; button.className = "outline small"; button.textContent = name;
      button.addEventListener("click", () => insert(name, begun.length));
      return button;
    }));
  });
  sql.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); form.requestSubmit(); }
    if (event.key === "Escape") offered.replaceChildren();
    if (event.key === "ArrowDown" && event.altKey && offered.firstChild) { event.preventDefault(); offered.firstChild.focus(); }
  });
  for (const button of all("[data-insert]")) button.addEventListener("click", (event) => { event.preventDefault(); insert(button.dataset.insert); });
  for (const button of all("[data-question]")) button.addEventListener("click", () => { sql.value = button.dataset.question; sql.focus(); changed(); });
}

/* ---- charts ---- */

function utc(seconds, span) {
  const text = new Date(seconds * 1000).toISOString();
  return span > 2 * 86400 ? text.slice(0, 10) : span > 600 ? text.slice(11, 16) : text.slice(11, span > 5 ? 19 : 21);
}

const drawn = new Map();  // place → its chart, and what watches its width

function redraw() {  // in the colours of now
  for (const [place, { plot, watch }] of drawn) { watch.disconnect(); plot.destroy(); delete place.dataset.drawn; }
  drawn.clear();
  charts();
}

function charts(root = document) {
  const style = getComputedStyle(document.documentElement), color = (name) => style.getPropertyValue(name).trim();
  const grid = { stroke: color("--pico-muted-border-color"), width: 1 }, axis = { stroke: color("--pico-muted-color"), grid, ticks: grid };
  const times = { ...axis, space: 90, values: (_, at) => at.map((t) => utc(t, at[at.length - 1] - at[0])) };  // in UTC
  const line = (label, more) => ({ label, stroke: color("--ours"), width: 2, points: { show: false }, ...more });
  for (const place of all("[data-chart]:not([data-drawn])", root)) {
    place.dataset.drawn = "yes";
    const content = JSON.parse(place.dataset.content), size = { width: place.clientWidth || 500, height: 260 };
    const percent = (_, values) => values.map((v) => v === null ? "" : `${Math.round(100 * v)} %`);
    const kinds = {
      curves: () => [{
        scales: { x: { time: false, range: [0, 1] }, y: { range: [0, 1] } }, legend: { live: false }, axes: [{ ...axis, values: percent, label: "false alarms", labelSize: 18 }, { ...axis, values: percent }],
        series: [{ label: "false alarms" }, line("no answer", { stroke: color("--pico-muted-color"), dash: [4, 4], width: 1 }), line("all answers so far"), line("whole budget", { stroke: color("--warm") }), ...(content[4] ? [line("after these questions", { dash: [8, 4] })] : [])],
      }, content],
      spent: () => [{
        scales: { y: { range: (u, low, high) => [0, high * 1.1] } }, axes: [times, axis], legend: { show: false },
        series: [{ label: "time (UTC)" }, line("ε spent", { paths: uPlot.paths.stepped({ align: 1 }), points: { show: content[0].length < 40, size: 6 } })],
      }, content],
      series: () => [{
        scales: { x: { time: content.time } }, axes: [content.time ? times : axis, axis], legend: { show: false },
        series: [{ label: content.key }, line(content.label), line("low", { width: 0 }), line("high", { width: 0 })], bands: [{ series: [3, 2], fill: color("--band") }],
      }, content.data],
    };
    const [options, data] = kinds[place.dataset.chart]();
    const plot = new uPlot({ ...size, ...options }, data, place);
    const watch = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: 260 }));
    watch.observe(place);
    drawn.set(place, { plot, watch });
  }
}

document.addEventListener("DOMContentLoaded", () => {
  if (one("#question")) { dials(); editor(); }
  charts();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
});
document.addEventListener("htmx:after:swap", () => {
  charts(); afterPreview();
});
document.addEventListener("htmx:after:request", (event) => {
  if (event.target.id === "question") document.body.dispatchEvent(new Event("asked"));
});
