/* Randomises one answer on the respondent's own machine.
 *
 * Whole numbers only: no floating-point number decides an outcome, and numbers stay at most 2^53, where they are exact.
 * The only source of randomness is the browser's (or Node's) cryptographic generator; without one this file throws.
 * For every answer the same draws are made in the same order, so that time tells nothing about it.
 * sfumato's Python client draws the same from the same words: tests/local/test_browser.py.
 */
"use strict";

(function (root) {
  const SAFE = 2 ** 53;
  const WORDS = 64; // fetched from the generator at a time

  /* A function that returns uniform 32-bit words of the platform's cryptographic generator, each once. */
  function systemWords() {
    const source = root.crypto;
    if (!source || typeof source.getRandomValues !== "function") {
      throw new Error("no cryptographic random numbers here: the answer is not sent");
    }
    const buffer = new Uint32Array(WORDS);
    let used = WORDS;
    return function next() {
      if (used === WORDS) {
        source.getRandomValues(buffer);
        used = 0;
      }
      const word = buffer[used];
      buffer[used] = 0;
      used += 1;
      return word;
    };
  }

  /* A function that draws uniformly below a bound of at most 2^53: two words, drawn again where a remainder would be biased. */
  function drawBelow(next) {
    return function below(bound) {
      const limit = SAFE - (SAFE % bound);
      for (;;) {
        const high = next() >>> 11;
        const x = high * 4294967296 + next();
        if (x < limit) return x % bound;
      }
    };
  }

  /* Randomized response: the value, or one of the others. */
  function response(r, value, below) {
    const u = below(r.truth + (r.k - 1) * r.lie);
    return u < r.truth ? value : (value + 1 + Math.floor((u - r.truth) / r.lie)) % r.k;
  }

  /* Unary encoding: one bit for each value. */
  function unary(r, value, below) {
    const bits = [];
    for (let v = 0; v < r.k; v += 1) {
      bits.push(v === value ? below(2) < 1 : below(r.truth + r.lie) < r.lie);
    }
    return bits;
  }

  /* Subset selection: is the value in the set? Then the others in turn, with probability needed / remaining. */
  function subset(r, value, below) {
    const inside = below(r.size * r.truth + (r.k - r.size) * r.lie) < r.size * r.truth;
    const bits = new Array(r.k).fill(false);
    bits[value] = inside;
    let needed = r.size - (inside ? 1 : 0);
    for (let i = 1; i < r.k; i += 1) {
      const taken = below(r.k - i) < needed;
      needed -= taken ? 1 : 0;
      bits[(value + i) % r.k] = taken;
    }
    return bits;
  }

  /* The field of prime^degree elements: sums, products and inverses, elements numbered by their digits. */
  function makeField(prime, degree, modulus) {
    const order = prime ** degree;
    const digits = (n) => Array.from({ length: degree }, (_, i) => Math.floor(n / prime ** i) % prime);
    const number = (d) => d.reduce((sum, x, i) => sum + x * prime ** i, 0);
    const add = (a, b) => number(digits(a).map((x, i) => (x + digits(b)[i]) % prime));
    const minus = (a) => number(digits(a).map((x) => (prime - x) % prime));
    const times = (a, b) => {
      const wide = new Array(2 * degree - 1).fill(0);
      digits(a).forEach((x, i) => digits(b).forEach((y, j) => { wide[i + j] += x * y; }));
      for (let high = 2 * degree - 2; high >= degree; high -= 1) {
        modulus.forEach((c, i) => { wide[high - degree + i] -= c * (wide[high] % prime); });
      }
      return number(wide.slice(0, degree).map((x) => ((x % prime) + prime) % prime));
    };
    const inverse = (a) => {
      for (let b = 1; b < order; b += 1) if (times(a, b) === 1) return b;
      return 0;
    };
    return { order, add, minus, times, inverse };
  }

  /* The vector of a point of a projective space, by its number: a leading 1 and what follows it. */
  function pointVector(number, order, length) {
    let tail = 0;
    let start = 0;
    while (start + order ** tail <= number) {
      start += order ** tail;
      tail += 1;
    }
    return baseDigits(number - start + order ** tail, order, length);
  }

  function baseDigits(number, order, length) {
    return Array.from({ length }, (_, i) => Math.floor(number / order ** (length - 1 - i)) % order);
  }

  function pointNumber(vector, field) {
    const lead = vector.findIndex((x) => x !== 0);
    const scale = field.inverse(vector[lead]);
    const value = vector.reduce((sum, x) => sum * field.order + field.times(scale, x), 0);
    const size = field.order ** (vector.length - 1 - lead);
    return (size - 1) / (field.order - 1) + value - size;
  }

  /* Projective geometry response: a point orthogonal to the value's point, or another. */
  function projective(r, value, below) {
    const field = makeField(r.prime, r.degree, r.modulus);
    const sum = (length) => (field.order ** length - 1) / (field.order - 1);
    const points = sum(r.length);
    const inSet = sum(r.length - 1);
    const inside = r.truth * inSet;
    const u = below(inside + r.lie * (points - inSet));
    const isInside = u < inside;
    const free = isInside
      ? pointVector(Math.floor(u / r.truth), field.order, r.length - 1)
      : baseDigits(Math.floor((u - inside) / r.lie), field.order, r.length - 1);
    const v = pointVector(value, field.order, r.length);
    let pivot = r.length - 1;
    while (v[pivot] === 0) pivot -= 1;
    const y = free.slice();
    y.splice(pivot, 0, 0);
    const total = v.reduce((found, x, i) => field.add(found, field.times(x, y[i])), 0);
    y[pivot] = field.times(field.inverse(v[pivot]), field.add(isInside ? 0 : 1, field.minus(total)));
    return pointNumber(y, field);
  }

  /* A set of values as JSON holds it: a number where it is exact, else hexadecimal digits of fixed length. */
  function packed(bits) {
    if (bits.length <= 53) return bits.reduce((sum, bit, v) => sum + (bit ? 2 ** v : 0), 0);
    const digits = [];
    for (let at = 0; at < bits.length; at += 4) {
      digits.push([0, 1, 2, 3].reduce((sum, i) => sum + (bits[at + i] ? 2 ** i : 0), 0).toString(16));
    }
    return digits.reverse().join("");
  }

  /* The report of a value under a design's randomizer. */
  function randomize(randomizer, value, below) {
    if (!Number.isInteger(value) || value < 0 || value >= randomizer.k) throw new Error("no value of this survey");
    switch (randomizer.scheme) {
      case "rr": return response(randomizer, value, below);
      case "unary": return packed(unary(randomizer, value, below));
      case "subset": return packed(subset(randomizer, value, below));
      case "pgr": return projective(randomizer, value, below);
      default: throw new Error("this client does not know the survey's randomizer");
    }
  }

  /* The line to send: drawn once and stored, so that a retry sends the same. */
  function respond(design, hash, value, store) {
    const key = "sfumato survey " + hash;
    const stored = store.getItem(key);
    if (stored) return stored;
    const next = systemWords();
    const report = randomize(design.randomizer, value, drawBelow(next));
    const id = [0, 1, 2, 3].map(() => next().toString(16).padStart(8, "0")).join("");
    const line = JSON.stringify({ design: hash, id, report });
    store.setItem(key, line);
    if (store.getItem(key) !== line) throw new Error("the response cannot be kept here, and a second draw would cost again");
    return line;
  }

  const survey = { systemWords, drawBelow, randomize, respond };
  root.SfumatoSurvey = survey;
  if (typeof module !== "undefined" && module.exports) module.exports = survey;
})(globalThis);
