"use strict";
/**
 * Read-outs: the rows that are read, and the answers made of the values there.
 *
 * @typedef {{kind: string, at: string, labels: string[], scale: number, mask: string,
 *            with_bos: boolean, powers: number[], size: number, name: string,
 *            parts: ReadOut[]}} ReadOut
 * @typedef {(y: Float64Array, readOut: ReadOut, at: number, n: number, format: Format) => any} Decision
 *   the answer from the values y at the position with index `at`, of an input of length n.
 */
const ReadOuts = (() => {
  const { Impossible } = NumberFormats;
  const { WEIGHTINGS, span } = Weightings;

  /**
   * The rows that the read-out reads: the first, and how many.
   * @param {Model} model @param {number} length @returns {[number, number]}
   */
  function rowsRead(model, length) {
    const { front, back, symbols } = model.embedding, at = model.read_out.at;
    if (at === "every") return [front.length, length];
    if (at === "each") return [front.length - (length === 0 ? 1 : 0), length + (length === 0 ? 1 : 0)];
    if (at === "cls") {
      const rows = [...front, ...Array(length).fill(-1), ...back];
      return [rows.indexOf(symbols.indexOf("CLS")), 1];
    }
    return [front.length + length + back.length - 1, 1];
  }

  /** A float64 as a fraction. @param {number} x @returns {[bigint, bigint]} */
  function fraction(x) {
    if (!Number.isFinite(x)) throw new Impossible("a value that is read out is infinite");
    let down = 1n;
    while (!Number.isInteger(x)) { x *= 2; down *= 2n; }
    return [BigInt(x), down];
  }

  /** ⌊p/q⌋ for q > 0. @param {bigint} p @param {bigint} q */
  function floor(p, q) {
    const whole = p / q;
    return p < 0n && whole * q !== p ? whole - 1n : whole;
  }

  /** The fraction p/q in lowest terms, as text. @param {bigint} p @param {bigint} q */
  function inWords(p, q) {
    let a = p < 0n ? -p : p, b = q;
    while (b) [a, b] = [b, a % b];
    return q / a === 1n ? `${p / a}` : `${p / a}/${q / a}`;
  }

  /** The first of the largest numbers. @param {Float64Array} y */
  const placeOfLargest = (y) => y.reduce((best, value, k) => (value > y[best] ? k : best), 0);

  /** @type {Record<string, Decision>} */
  const DECISIONS = {
    Binary: (y) => y[0] > 0,
    MultiClass: (y, r) => r.labels[placeOfLargest(y)],
    LanguageModel(y, r, at, n, format) {
      const chances = Float64Array.from(y);
      WEIGHTINGS.softmax(chances, 0, y.length, format);
      return Object.fromEntries(r.labels.map((label, k) => [label, chances[k]]));
    },
    RealVector: (y) => [...y],
    NearestFraction(y, r, at, n) {
      const [first, stop] = span(r.mask, at, n), count = Math.max(stop - first, 0);
      if (!count || at < 0) return "0";
      const [p, q] = fraction(y[0]), parts = BigInt(r.scale * (count + (r.with_bos ? 1 : 0)));
      return inWords(floor(2n * p * parts + q, 2n * q), BigInt(r.scale * count));
    },
    NearZero: (y, r, at, n) =>
      y.every((value, k) => {
        const [p, q] = fraction(Math.abs(value));
        return p * 2n * BigInt(n + 1) ** BigInt(r.powers[k]) < q;
      }),
  };

  /**
   * The answers of a read-out from its values (count rows), of which it has those from `start` on.
   * @param {ReadOut} readOut @param {Float64Array} values @param {number} start
   * @param {number} width @param {number} count @param {number} length @param {Format} format
   */
  function answersOf(readOut, values, start, width, count, length, format) {
    return Array.from({ length: count }, (_, k) => {
      const y = values.slice(k * width + start, k * width + start + readOut.size);
      // Of the last `count` positions up to n; the row of BOS, before position 1, has −1.
      return DECISIONS[readOut.kind](y, readOut, length - count + k, length, format);
    });
  }

  /**
   * The answer from the values read out.
   * @param {Model} model @param {Float64Array} values @param {number} count
   * @param {number} length @param {Format} format
   */
  function answerOf(model, values, count, length, format) {
    const readOut = model.read_out, width = model.W_out.shape[0];
    if (values.some(Number.isNaN)) throw new Impossible(`the values read out are NaN in ${format.name}, which an overflow leaves behind`);
    const joined = (/** @type {ReadOut} */ part, /** @type {number} */ start) => {
      const all = answersOf(part, values, start, width, count, length, format);
      return part.at === "every" ? all.slice(count - length) : all[count - 1];
    };
    if (readOut.kind !== "Outputs") return joined(readOut, 0);
    let start = 0;
    return Object.fromEntries(readOut.parts.map((part) => {
      const answer = joined(part, start);
      start += part.size;
      return [part.name, answer];
    }));
  }

  return { answerOf, rowsRead };
})();
