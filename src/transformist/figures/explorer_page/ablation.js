"use strict";
/**
 * Models without some heads, hidden units or slots, by weights of 0, as `transformist.ablate` makes
 * them: a number that overflows elsewhere meets the same zeros as in Python.
 */
const Ablation = (() => {
  const { Impossible } = NumberFormats;

  /**
   * A matrix with 0 in some places.
   * @param {Matrix} matrix @param {(row: number, column: number) => boolean} isOut
   * @returns {Matrix}
   */
  function zeroed(matrix, isOut) {
    const columns = matrix.shape[1];
    const kept = [...matrix.at.keys()].filter((k) => !isOut(Math.floor(matrix.at[k] / columns), matrix.at[k] % columns));
    const of = (/** @type {any} */ list) => list && kept.map((k) => list[k]);
    return { shape: matrix.shape, at: of(matrix.at), exact: of(matrix.exact),
      float64: of(matrix.float64), float32: of(matrix.float32), bfloat16: of(matrix.bfloat16) };
  }

  /** The identity matrix. @param {number} width @returns {Matrix} */
  function identity(width) {
    const at = Array.from({ length: width }, (_, k) => k * (width + 1));
    return { shape: [width, width], at, float64: at.map(() => 1) };
  }

  /** The head that adds 0 to some slots. @param {Head} head @param {(slot: number) => boolean} isOut */
  function silenced(head, isOut) {
    const W_O = head.W_O || identity(head.W_V.shape[0]);
    return { ...head, W_O: zeroed(W_O, isOut), b_O: zeroed(head.b_O, (_, slot) => isOut(slot)) };
  }

  /**
   * The positions that add 0 to some slots.
   * @param {Positions} positions @param {(slot: number) => boolean} isOut @returns {Positions}
   */
  function positionsWithout(positions, isOut) {
    if (positions.kind === "functions") {
      return { ...positions, names: positions.names.map((name, slot) => (isOut(slot) ? null : name)) };
    }
    if (positions.kind === "table") {
      return { ...positions, vectors: zeroed(positions.vectors, (_, slot) => isOut(slot)) };
    }
    throw new Impossible(`a slot cannot be ablated where ${refusalOfSlots(positions)}`);
  }

  /** Why no slot can be ablated; null where each can. @param {Positions | null} positions */
  function refusalOfSlots(positions) {
    if (!positions || positions.kind === "functions" || positions.kind === "table") return null;
    return "the positions are sinusoids, or several encodings side by side, which tf.ablate refuses";
  }

  /** The model with the heads, units and slots of the changes ablated. @param {Model} model @param {Changes} changes @returns {Model} */
  function ablated(model, { heads, units, slots }) {
    if (!heads.length && !units.length && !slots.length) return model;
    const isOut = (/** @type {number} */ slot) => slots.includes(slot);
    const has = (/** @type {[number, number][]} */ list, /** @type {number} */ layer, /** @type {number} */ number) =>
      list.some(([l, k]) => l === layer && k === number);
    const steps = model.steps.map((step) => ({
      ...step,
      heads: step.heads.map((head, k) => {
        if (has(heads, step.layer, k)) return silenced(head, () => true);
        return slots.length ? silenced(head, isOut) : head;
      }),
      network: step.network && {
        ...step.network,
        W_2: zeroed(step.network.W_2, (slot, unit) => isOut(slot) || has(units, step.layer, unit)),
        b_2: zeroed(step.network.b_2, (_, slot) => isOut(slot)),
      },
    }));
    if (!slots.length) return { ...model, steps };
    const vectors = zeroed(model.embedding.vectors, (_, slot) => isOut(slot));
    const positions = model.embedding.positions && positionsWithout(model.embedding.positions, isOut);
    return { ...model, steps, embedding: { ...model.embedding, vectors, positions } };
  }

  return { ablated, refusalOfSlots };
})();
