"use strict";
/**
 * Masks and weightings: the attention weights of one query, from its scores.
 *
 * @typedef {(s: Float64Array, first: number, stop: number, f: Format) => void} Weighting
 *   turns the scores of the admissible keys first ≤ j < stop into attention weights, in place; the
 *   other entries are 0.
 */
const Weightings = (() => {
  const { Impossible } = NumberFormats;

  /** The admissible keys of a query, first ≤ j < stop. @param {string} mask @param {number} i @param {number} n @returns {[number, number]} */
  function span(mask, i, n) {
    switch (mask) {
      case "none": return [0, n];
      case "future": return [0, i + 1];
      case "strict-future": return [0, i];
      case "past": return [i, n];
      case "strict-past": return [i + 1, n];
    }
    throw new Impossible(`unknown mask ${mask}`);
  }

  /** @type {Record<string, Weighting>} */
  const WEIGHTINGS = {
    softmax(s, first, stop, f) {
      let largest = -Infinity;
      for (let j = first; j < stop; j++) largest = Math.max(largest, s[j]);
      let total = 0;
      for (let j = first; j < stop; j++) {
        s[j] = f.nearest(Math.exp(f.store(f.partial(s[j] - largest))));
        total = f.partial(total + s[j]);
      }
      total = f.store(total);
      for (let j = first; j < stop; j++) s[j] = f.store(f.partial(s[j] / total));
    },
    "average-hard"(s, first, stop, f) {
      const chosen = maximal(s, first, stop);
      // k is rounded to the format, and 1/k once more.
      const share = f.store(f.partial(1 / f.nearest(Math.max(chosen.length, 1))));
      s.fill(0);
      for (const j of chosen) s[j] = share;
    },
    "leftmost-hard"(s, first, stop) {
      const chosen = maximal(s, first, stop);
      s.fill(0);
      if (chosen.length) s[chosen[0]] = 1;
    },
    "rightmost-hard"(s, first, stop) {
      const chosen = maximal(s, first, stop);
      s.fill(0);
      if (chosen.length) s[chosen[chosen.length - 1]] = 1;
    },
  };

  /**
   * The admissible keys with the largest score.
   * @param {Float64Array} s @param {number} first @param {number} stop
   */
  function maximal(s, first, stop) {
    /** @type {number[]} */
    let chosen = [];
    for (let j = first; j < stop; j++) {
      if (!chosen.length || s[j] > s[chosen[0]]) chosen = [j];
      else if (s[j] === s[chosen[0]]) chosen.push(j);
    }
    return chosen;
  }

  return { WEIGHTINGS, span };
})();
