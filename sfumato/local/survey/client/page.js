/* The survey page: shows the question, randomises the chosen answer, shows the report. design.js sets DESIGN and HASH. */
"use strict";

(function () {
  const at = (id) => document.getElementById(id);
  const design = JSON.parse(DESIGN);
  at("question").textContent = design.question;
  document.title = design.question;
  at("odds").textContent = (design.randomizer.truth / design.randomizer.lie).toPrecision(3);

  function show(line) {
    at("report").textContent = line;
    at("after").hidden = false;
    document.querySelectorAll("#answers button").forEach((button) => { button.disabled = true; });
  }

  design.answers.forEach((answer, value) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = answer;
    button.addEventListener("click", () => {
      try {
        show(SfumatoSurvey.respond(design, HASH, value, localStorage));
      } catch (problem) {
        at("problem").textContent = "Nothing was sent: " + problem.message;
      }
    });
    at("answers").append(button);
  });
  at("copy").addEventListener("click", () => navigator.clipboard.writeText(at("report").textContent));
  const stored = localStorage.getItem("sfumato survey " + HASH);
  if (stored) show(stored);
})();
