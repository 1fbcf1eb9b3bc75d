"use strict";
/**
 * The number formats of the page: float64, float32 and bfloat16.
 *
 * The roundings are those of `transformist.arithmetic.floating`.
 *
 * @typedef {"float64" | "float32" | "bfloat16"} FormatName
 * @typedef {{name: FormatName, digits: number, partial: (x: number) => number,
 *            store: (x: number) => number, nearest: (x: number) => number}} Format
 *   digits counts the bits of a significand; partial rounds to the accumulator, store from there to
 *   the format, nearest from float64.
 */
const NumberFormats = (() => {
  /** Thrown where the input, the format or the changes admit no evaluation. */
  class Impossible extends Error {}

  const bits = new DataView(new ArrayBuffer(4));

  /** float32 to bfloat16: the upper 16 bits, to nearest, ties to even. @param {number} x */
  function upperHalf(x) {
    if (!Number.isFinite(x)) return x;
    bits.setFloat32(0, x);
    const word = bits.getUint32(0);
    // Half a unit, less one unless the last bit kept is 1: a tie goes to the even neighbour.
    bits.setUint32(0, ((word + 0x7fff + ((word >>> 16) & 1)) & 0xffff0000) >>> 0);
    return bits.getFloat32(0);
  }

  /**
   * float64 to bfloat16 in one rounding. Through float32 rounded to odd, as rounding twice to
   * nearest may take a number beyond the middle of two numbers of the format.
   * @param {number} x
   */
  function nearestBfloat16(x) {
    const single = Math.fround(x);
    if (single === x || !Number.isFinite(single)) return upperHalf(single);
    bits.setFloat32(0, single);
    const word = bits.getUint32(0);
    if ((word & 1) === 0) {
      // Away from 0 the word grows, whatever the sign. At 0 itself the sign is that of x.
      if (single === 0) bits.setUint32(0, x > 0 ? 1 : 0x80000001);
      else bits.setUint32(0, Math.abs(x) > Math.abs(single) ? word + 1 : word - 1);
    }
    return upperHalf(bits.getFloat32(0));
  }

  const same = (/** @type {number} */ x) => x;

  // A product or sum of two float32 numbers is exact in float64, or rounded there to 53 ≥ 2 · 24 + 2
  // bits, so that `Math.fround` of it is the float32 result (Figueroa 1995).
  /** @type {Record<FormatName, Format>} */
  const FORMATS = {
    float64: { name: "float64", digits: 53, partial: same, store: same, nearest: same },
    float32: { name: "float32", digits: 24, partial: Math.fround, store: same, nearest: Math.fround },
    bfloat16: { name: "bfloat16", digits: 8, partial: Math.fround, store: upperHalf, nearest: nearestBfloat16 },
  };

  return { FORMATS, Impossible, nearestBfloat16 };
})();
