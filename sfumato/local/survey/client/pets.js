/* The class's pet question, to play with: two coins per person, no server. */
"use strict";

(function () {
  const at = (id) => document.getElementById(id);
  const coins = { scheme: "rr", k: 2, truth: 3, lie: 1 };
  const below = SfumatoSurvey.drawBelow(SfumatoSurvey.systemWords());
  const MOST = 200000; // draws for one press of a button
  let dots = [];

  const people = () => Math.round(10 ** Number(at("people").value));
  const holders = () => Math.round((people() * Number(at("share").value)) / 100);

  function ask() {
    const n = people();
    const m = holders();
    let yes = 0;
    for (let i = 0; i < n; i += 1) yes += SfumatoSurvey.randomize(coins, i < m ? 1 : 0, below);
    return yes / n;
  }

  function draw() {
    const n = people();
    const x = (share) => 40 + 560 * Math.min(1.2, Math.max(-0.2, share) + 0.2) / 1.4;
    const tick = (share) => `<line x1="${x(share)}" y1="140" x2="${x(share)}" y2="146" stroke="#666"/>` +
      `<text x="${x(share)}" y="162" text-anchor="middle" font-size="12" fill="#444">${Math.round(100 * share)} %</text>`;
    const marks = dots.map((share, i) => `<circle cx="${x(share).toFixed(1)}" cy="${30 + (i * 37) % 100}" r="3.2" fill="#a4452c" fill-opacity=".55"/>`);
    const truth = holders() / n;
    at("picture").innerHTML = `<line x1="40" y1="140" x2="600" y2="140" stroke="#666"/>` + [0, 0.25, 0.5, 0.75, 1].map(tick).join("") +
      `<line x1="${x(truth)}" y1="18" x2="${x(truth)}" y2="140" stroke="#2d5a7b" stroke-width="2"/>` +
      `<text x="${x(truth)}" y="13" text-anchor="middle" font-size="12" fill="#2d5a7b">true share</text>` + marks.join("");
    at("n").textContent = n.toLocaleString("en");
    at("truth").textContent = `${at("share").value} %`;
    at("error").textContent = `± ${(Math.sqrt(3 * n) / 2).toFixed(1)} people (${(50 * Math.sqrt(3 / n)).toFixed(1)} points)`;
    at("central").textContent = "± 1.2 people";
  }

  function show(times) {
    dots = [];
    let yes = 0;
    for (let i = 0; i < times; i += 1) {
      yes = ask();
      dots.push(2 * (yes - 0.25));
    }
    at("yes").textContent = `${(100 * yes).toFixed(1)} %`;
    at("estimate").textContent = `${(200 * (yes - 0.25)).toFixed(1)} %`;
    draw();
  }

  at("once").addEventListener("click", () => show(1));
  at("often").addEventListener("click", () => show(Math.max(1, Math.min(200, Math.floor((10 * MOST) / people())))));
  ["people", "share"].forEach((id) => at(id).addEventListener("input", () => { dots = []; draw(); }));
  draw();
})();
