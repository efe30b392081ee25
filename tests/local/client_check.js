/* Reads cases (randomizer, words, values) as JSON from standard input and writes the reports of the browser client. */
"use strict";
const survey = require(process.argv[2]);
let text = "";
process.stdin.on("data", (part) => { text += part; });
process.stdin.on("end", () => {
  const found = JSON.parse(text).map((one) => {
    let used = 0;
    const next = () => {
      if (used >= one.words.length) throw new Error("out of words");
      used += 1;
      return one.words[used - 1];
    };
    const below = survey.drawBelow(next);
    return one.values.map((value) => survey.randomize(one.design, value, below));
  });
  process.stdout.write(JSON.stringify(found));
});
