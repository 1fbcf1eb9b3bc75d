"use strict";
/** The words of the page, each explained in a sentence. */
const Glossary = (() => {
  const { h } = Elements;

  /** @type {Record<string, string>} */
  const MASKS = {
    none: "every position may attend to every other and to itself",
    future: "later positions are masked: a position attends to itself and to earlier ones",
    "strict-future": "later positions and the position itself are masked: it attends to earlier ones",
    past: "earlier positions are masked: a position attends to itself and to later ones",
    "strict-past": "earlier positions and the position itself are masked: it attends to later ones",
  };

  /** @type {Record<string, string>} */
  const WEIGHTINGS = {
    softmax: "the weight of a key is e to the power of its score, divided by the sum of these over all keys",
    "average-hard": "the keys with the largest score share the weight equally",
    "leftmost-hard": "the first key with the largest score has all the weight",
    "rightmost-hard": "the last key with the largest score has all the weight",
  };

  /** @type {Record<string, string>} */
  const ACTIVATIONS = {
    relu: "ReLU(x) is the larger of x and 0",
    "gelu-tanh": "gelu-tanh(x) is x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))",
    "gelu-sigmoid": "gelu-sigmoid(x) is x/(1 + e^(−1.702 x))",
  };

  /** The words that a page of this model uses, with their meanings. @param {Model} model */
  function words(model) {
    const heads = model.steps.flatMap((step) => step.heads);
    const activations = model.steps.flatMap((step) => (step.network ? [step.network.activation] : []));
    const { front, back, symbols } = model.embedding, added = [...front, ...back];
    const of = (names, meanings, kind) => [...new Set(names)].map((name) => [`${kind} ${name}`, meanings[name]]);
    return [
      ["Residual stream", "the vectors that the model works on, one for each position; every step adds to them"],
      ["Slot", "a coordinate of the residual stream, with the name of the number that it holds"],
      ...(added.length ? [[[...new Set(added)].map((k) => symbols[k]).join(", "), `a symbol that the model itself puts ${front.length ? "before" : "after"} the input`]] : []),
      ...(heads.length ? [["Head", "a part of an attention step: at each position (the query) it takes a weighted mean of vectors made of other positions (the keys)"],
        ["Score", "how well a key fits a query: the dot product of both, divided by √d for vectors of d numbers"]] : []),
      ...of(heads.map((head) => head.weighting), WEIGHTINGS, "Weighting"),
      ...of(heads.map((head) => head.mask), MASKS, "Mask"),
      ...(activations.length ? [["Hidden unit", `a part of a feed-forward network, which works on each position alone: ${[...new Set(activations)].map((name) => ACTIVATIONS[name]).join("; ")}`]] : []),
      ["Read-out", "the last step: the answer is made of the last vectors"],
      ["To pin, to clamp", "to put a number into a slot after a step, at one position or at every one; later steps read it"],
      ["To ablate a slot", "to let no step add to it; a head or a unit that is switched off adds 0"],
      ["Margin", "the error that a comparison allows, beside the bound of the error that rounding makes"],
      ["float64, float32, bfloat16", "number formats, with 53, 24 and 8 binary digits"],
    ];
  }

  /** @param {Model} model */
  function list(model) {
    return h("dl", {}, words(model).map(([word, meaning]) => [h("dt", {}, word), h("dd", {}, `${meaning}.`)]));
  }

  return { MASKS, WEIGHTINGS, list };
})();
