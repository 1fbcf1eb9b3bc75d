"use strict";
/** Answers in words, and answers of a format compared with those of a wider one. */
const Comparison = (() => {
  const { short } = Elements;

  /** Most units in the last place by which numbers of equal answers differ. */
  const MOST_UNITS = 16;

  /** @param {any} answer @returns {string} */
  function answerWords(answer) {
    if (answer === true) return "accepted";
    if (answer === false) return "rejected";
    if (typeof answer === "string") return answer;
    if (typeof answer === "number") return short(answer);
    if (Array.isArray(answer)) {
      if (!answer.length) return "nothing, as the input is empty";
      const words = answer.map((each) => answerWords(each));
      return answer.every((each) => typeof each === "string" && [...each].length === 1) ? words.join("") : words.join(", ");
    }
    return Object.entries(answer).map(([name, each]) => `${name}: ${answerWords(each)}`).join("; ");
  }

  /**
   * Compare an answer of a format with one of a wider format, or an exact one in float64.
   *
   * Numbers are equal if they differ by at most 16 units in the last place of the format. The unit is
   * that of the larger of the number and 1, as near 0 a number is what remains of larger ones.
   * @param {any} got @param {any} wanted @param {Format} format
   * @returns {{isSame: boolean, difference: number, units: number, hasNumbers: boolean}}
   */
  function compare(got, wanted, format) {
    if (typeof got === "number" && typeof wanted === "number") {
      const difference = got === wanted ? 0 : Math.abs(got - wanted);
      const unit = 2 ** (Math.floor(Math.log2(Math.max(Math.abs(wanted), 1))) - format.digits + 1);
      return { isSame: difference <= MOST_UNITS * unit, difference, units: difference / unit, hasNumbers: true };
    }
    const isPair = got && wanted && typeof got === "object" && typeof wanted === "object";
    const keys = isPair ? Object.keys(got) : [];
    if (!isPair || keys.join("\n") !== Object.keys(wanted).join("\n")) {
      return { isSame: answerWords(got) === answerWords(wanted), difference: 0, units: 0, hasNumbers: false };
    }
    const parts = keys.map((key) => compare(got[key], wanted[key], format));
    return parts.reduce((all, each) => ({
      isSame: all.isSame && each.isSame,
      difference: Math.max(all.difference, each.difference),
      units: Math.max(all.units, each.units),
      hasNumbers: all.hasNumbers || each.hasNumbers,
    }), { isSame: true, difference: 0, units: 0, hasNumbers: false });
  }

  /**
   * A sentence that compares an answer with that of float64, or of exact arithmetic.
   * @param {string} who @param {any} got @param {any} wanted @param {Format} format
   */
  function comparedWords(who, got, wanted, format) {
    const { isSame, difference, units, hasNumbers } = compare(got, wanted, format);
    if (!hasNumbers) return isSame ? `${who} gives the same answer.` : `${who} gives the answer ${answerWords(wanted)}.`;
    if (isSame && difference === 0) return `${who} gives the same answer, taken in float64.`;
    const size = `the numbers differ by at most ${short(difference)}, which is ${short(units)} units in the last place of ${format.name}`;
    return isSame ? `${who} gives the same answer within ${MOST_UNITS} units: ${size}.`
      : `${who} gives another answer, ${answerWords(wanted)}: ${size}.`;
  }

  return { answerWords, compare, comparedWords };
})();
