"use strict";
/**
 * Numbers that a reader types: decimals, and fractions of whole numbers.
 *
 * @typedef {{value: number, words: string} | {refusal: string}} Typed
 *   the nearest float64 and the number as it was typed, or what is wrong with the text.
 */
const TypedNumbers = (() => {
  // A fraction p/q of whole numbers up to 2²⁴ that is no middle of two numbers of a narrow format
  // differs from each such middle by more than 2⁻³⁴ of its size. Its float64 is therefore on the
  // same side of the middle, and rounding it again gives the number nearest to p/q itself.
  const LARGEST = 2 ** 24;

  /** The number of a text. @param {string} text @returns {Typed} */
  function readNumber(text) {
    const plain = text.trim().replace(/[−–]/g, "-");
    if (!plain) return { refusal: "Nothing was put in: the number is missing. Type one, such as 0.5 or 1/3." };
    const parts = /^([+-]?\d+)\s*\/\s*(\d+)$/.exec(plain);
    if (parts) return readFraction(Number(parts[1]), Number(parts[2]), plain);
    const value = Number(plain);
    if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain)) {
      return { refusal: `Nothing was put in: ${JSON.stringify(text.trim())} is no number. Type one with a decimal point, or a fraction such as 1/3.` };
    }
    if (!Number.isFinite(value)) return { refusal: `Nothing was put in: ${plain} is too large for float64.` };
    return { value, words: plain };
  }

  /** @param {number} p @param {number} q @param {string} words @returns {Typed} */
  function readFraction(p, q, words) {
    if (q === 0) return { refusal: `Nothing was put in: ${words} divides by 0.` };
    if (Math.abs(p) > LARGEST || q > LARGEST) {
      return { refusal: `Nothing was put in: the numbers of a fraction may be at most ${LARGEST}. Type a decimal instead of ${words}.` };
    }
    return { value: p / q, words: words.replace(/\s/g, "") };
  }

  return { readNumber };
})();
