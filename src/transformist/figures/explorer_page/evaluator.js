"use strict";
/**
 * The evaluator of the explorer: a transformer on one input, in float64, float32 or bfloat16.
 *
 * It follows the definitions of `transformist.model` operation by operation, and the roundings of
 * `transformist.arithmetic.floating`: sums run from left to right, each operation is rounded once.
 * Only exp, tanh and their kin may differ from numpy's in the last place. It knows nothing of the page.
 *
 * A list of n vectors of length d is a Float64Array of n · d numbers, row after row. Python has
 * rounded every weight to each format, so that no weight is rounded here.
 *
 * @typedef {{shape: [number, number], at: number[], exact?: string[],
 *            float64: number[], float32?: number[], bfloat16?: number[]}} Matrix
 *   the entries other than 0: their places, row after row, and their values; formats that are left
 *   out have those of float64, and `exact` is left out where float64 is exact.
 * @typedef {{kind: "functions", names: (string | null)[], waves: Record<string, number[]>}
 *           | {kind: "table" | "sinusoids", vectors: Matrix}
 *           | {kind: "parts", parts: Positions[]}} Positions
 * @typedef {{W_Q: Matrix, b_Q: Matrix, W_K: Matrix, b_K: Matrix, W_V: Matrix, b_V: Matrix,
 *            W_O: Matrix | null, b_O: Matrix, weighting: string, mask: string}} Head
 * @typedef {{W_1: Matrix, b_1: Matrix, W_2: Matrix, b_2: Matrix, activation: string}} Network
 * @typedef {{gain: Matrix, bias: Matrix, epsilon: Matrix, W_N: Matrix | null}} Norm
 * @typedef {{name: string, kind: "attention" | "feed-forward" | "norm", layer: number,
 *            heads: Head[], network: Network | null, before: Norm | null, after: Norm | null}} Step
 * @typedef {{symbols: string[], inputs: number[], vectors: Matrix, positions: Positions | null,
 *            front: number[], back: number[]}} Embedding
 * @typedef {{slots: string[], held: string[][], embedding: Embedding, steps: Step[],
 *            read_out: ReadOut, W_out: Matrix, b_out: Matrix, max_length: number | null,
 *            longest: number}} Model
 * @typedef {{heads: [number, number][], units: [number, number][], slots: number[],
 *            pins: Pin[]}} Changes
 *   heads and units that add nothing, slots to which nothing is added, and numbers put in. The
 *   ablations come first; then the numbers are put in, later ones over earlier ones: the result is
 *   that of `tf.ablate(…).run(x, patch={…})`.
 * @typedef {{after: number, row: number | null, column: number, value: number, words?: string}} Pin
 *   a number put into the stream after a step: at one row, or at every row where `row` is null.
 * @typedef {{read: Float64Array, heads: any[], added: Float64Array}} Work
 *   the vectors that a sublayer reads, its heads as `attend` gives them, and what it adds.
 *   The model of a run is the one with the ablations.
 * @typedef {{model: Model, format: Format, rows: number[], length: number, streams: Float64Array[], work: Work[],
 *            values: Float64Array, first: number, count: number, answer: any}} Run
 */
const Evaluator = (() => {
  const { FORMATS, Impossible } = NumberFormats;
  const { WEIGHTINGS, span } = Weightings;
  const { answerOf, rowsRead } = ReadOuts;

  const NOTHING = Object.freeze({ heads: [], units: [], slots: [], pins: [] });

  const sparse = new WeakMap();

  /**
   * The entries of a matrix other than 0, row by row, in a format; made once.
   *
   * The places of a matrix ascend, so that row r has the entries from `starts[r]` up to
   * `starts[r + 1]`, with their columns and values; `read` has the columns in which some row has an
   * entry.
   * @param {Matrix} matrix @param {Format} format
   * @returns {{rows: number, columns: number, starts: Int32Array, places: Int32Array,
   *            values: Float64Array, read: number[]}}
   */
  function entriesOf(matrix, format) {
    let made = sparse.get(matrix);
    if (!made) sparse.set(matrix, (made = {}));
    if (!made[format.name]) {
      const [rows, columns] = matrix.shape, given = matrix[format.name] || matrix.float64;
      const kept = [...matrix.at.keys()].filter((k) => given[k] !== 0);
      const starts = new Int32Array(rows + 1);
      for (const k of kept) starts[Math.floor(matrix.at[k] / columns) + 1]++;
      for (let row = 0; row < rows; row++) starts[row + 1] += starts[row];
      const places = Int32Array.from(kept, (k) => matrix.at[k] % columns);
      const values = Float64Array.from(kept, (k) => given[k]);
      const read = [...new Set(places)].sort((a, b) => a - b);
      made[format.name] = { rows, columns, starts, places, values, read };
    }
    return made[format.name];
  }

  /** The columns in which a row has entries. @param {Matrix} matrix @param {number} row @param {Format} format */
  function columnsOf(matrix, row, format) {
    const { starts, places } = entriesOf(matrix, format);
    return [...places.subarray(starts[row], starts[row + 1])];
  }

  /** A row of a matrix as an array. @param {Matrix} matrix @param {number} row @param {Format} format */
  function rowOf(matrix, row, format) {
    const { columns, starts, places, values } = entriesOf(matrix, format);
    const vector = new Float64Array(columns);
    for (let k = starts[row]; k < starts[row + 1]; k++) vector[places[k]] = values[k];
    return vector;
  }

  /**
   * W x + b for n vectors: products in order of the coordinates, then the bias, then one rounding.
   *
   * Entries of W that are 0 are left out. This changes no bit: the sum begins at +0, and adding ±0
   * to it changes nothing. Where a coordinate is infinite or NaN, 0 times it is NaN; there the row
   * is summed over every coordinate that some row of W reads, as Python does.
   * @param {Format} format @param {Float64Array} x @param {number} n
   * @param {Matrix} W @param {Matrix | null} b
   */
  function affine(format, x, n, W, b) {
    const { rows, columns, starts, places, values, read } = entriesOf(W, format);
    const bias = b && rowOf(b, 0, format);
    const { partial, store } = format;
    const y = new Float64Array(n * rows);
    for (let i = 0; i < n; i++) {
      const start = i * columns;
      const finite = read.every((column) => Number.isFinite(x[start + column]));
      for (let row = 0; row < rows; row++) {
        let total = 0;
        if (finite) {
          for (let k = starts[row]; k < starts[row + 1]; k++) {
            total = partial(total + partial(x[start + places[k]] * values[k]));
          }
        } else {
          const weights = rowOf(W, row, format);
          for (const column of read) {
            total = partial(total + partial(x[start + column] * weights[column]));
          }
        }
        if (bias) total = partial(total + bias[row]);
        y[i * rows + row] = store(total);
      }
    }
    return y;
  }

  /** x + y, number by number. @param {Format} f @param {Float64Array} x @param {Float64Array} y */
  function add(f, x, y) {
    return x.map((value, k) => f.store(f.partial(value + y[k])));
  }

  /**
   * A head on n vectors: queries, keys, values; scores and weights of a query; mixed values.
   * @param {Head} head @param {Float64Array} z @param {number} n @param {Format} format
   */
  function attend(head, z, n, format) {
    const q = affine(format, z, n, head.W_Q, head.b_Q);
    const k = affine(format, z, n, head.W_K, head.b_K);
    const v = affine(format, z, n, head.W_V, head.b_V);
    const { partial, store, nearest } = format;
    const keys = head.W_Q.shape[0], width = head.W_V.shape[0];
    const root = nearest(Math.sqrt(nearest(keys)));

    /** The scores of a query with every key, masked or not. @param {number} i */
    function scores(i) {
      const s = new Float64Array(n);
      for (let j = 0; j < n; j++) {
        let dot = 0;
        for (let m = 0; m < keys; m++) dot = partial(dot + partial(q[i * keys + m] * k[j * keys + m]));
        s[j] = store(partial(store(dot) / root));
        if (!Number.isFinite(s[j])) {
          throw new Impossible(`an attention score overflows in ${format.name}; use a wider format`);
        }
      }
      return s;
    }

    /** The attention weights of a query. @param {number} i */
    function weights(i) {
      const s = scores(i), [first, stop] = span(head.mask, i, n);
      s.fill(0, 0, first);
      s.fill(0, Math.max(first, stop));
      WEIGHTINGS[head.weighting](s, first, stop, format);
      return s;
    }

    const isFinite = v.every(Number.isFinite);
    const c = new Float64Array(n * width);
    for (let i = 0; i < n; i++) {
      const alpha = weights(i);
      for (let m = 0; m < width; m++) {
        let total = 0;
        for (let j = 0; j < n; j++) {
          // A weight of 0 adds +0 or −0 to the sum, unless the value is infinite or NaN.
          if (alpha[j] === 0 && isFinite) continue;
          total = partial(total + partial(alpha[j] * v[j * width + m]));
        }
        c[i * width + m] = store(total);
      }
    }
    return { q, k, v, c, keys, width, scores, weights };
  }

  /**
   * W_O c + b_O of the mixed values.
   * @param {Head} head @param {Float64Array} c @param {number} n @param {Format} format
   */
  function headOutput(head, c, n, format) {
    if (head.W_O) return affine(format, c, n, head.W_O, head.b_O);
    if (!head.b_O.at.length) return c;
    const bias = rowOf(head.b_O, 0, format);
    return c.map((value, k) => format.store(format.partial(value + bias[k % bias.length])));
  }

  /** @type {Record<string, (x: number, f: Format) => number>} */
  const ACTIVATIONS = {
    relu: (x) => (Number.isNaN(x) ? x : Math.max(x, 0)),
    "gelu-tanh"(x, f) {
      const of = (/** @type {number} */ value) => f.store(f.partial(value));
      const cube = of(x * of(x * x));
      const inner = of(x + of(f.nearest(0.044715) * cube));
      const curve = f.nearest(Math.tanh(of(f.nearest(Math.sqrt(2 / Math.PI)) * inner)));
      return of(of(f.nearest(0.5) * x) * of(1 + curve));
    },
    "gelu-sigmoid"(x, f) {
      const of = (/** @type {number} */ value) => f.store(f.partial(value));
      return of(x / of(1 + f.nearest(Math.exp(of(f.nearest(-1.702) * x)))));
    },
  };

  /**
   * The hidden units of a network on n vectors.
   * @param {Network} network @param {Float64Array} z @param {number} n @param {Format} format
   */
  function hidden(network, z, n, format) {
    const act = ACTIVATIONS[network.activation];
    return affine(format, z, n, network.W_1, network.b_1).map((x) => act(x, format));
  }

  /**
   * Layer normalization of n vectors; `parts` gets mean and deviation of each.
   * @param {Norm} norm @param {Float64Array} x @param {number} n @param {Format} format
   * @param {{mean: number, deviation: number}[]} [parts]
   */
  function normalized(norm, x, n, format, parts) {
    const { partial, store, nearest } = format;
    const of = (/** @type {number} */ value) => store(partial(value));
    if (norm.W_N) x = affine(format, x, n, norm.W_N, null);
    const gain = rowOf(norm.gain, 0, format), bias = rowOf(norm.bias, 0, format);
    const epsilon = rowOf(norm.epsilon, 0, format)[0];
    const d = gain.length, size = nearest(d);
    const sum = (/** @type {Float64Array} */ list) => store(list.reduce((total, value) => partial(total + value), 0));
    const y = new Float64Array(n * d);
    for (let i = 0; i < n; i++) {
      const vector = x.subarray(i * d, (i + 1) * d);
      const mean = of(sum(vector) / size);
      const centred = vector.map((value) => of(value - mean));
      const variance = of(sum(centred.map((value) => of(value * value))) / size);
      const deviation = nearest(Math.sqrt(of(variance + epsilon)));
      if (!(deviation > 0)) {
        throw new Impossible(`a norm has σ² + ε = 0 at row ${i}, and so no value`);
      }
      if (parts) parts.push({ mean, deviation });
      centred.forEach((value, k) => {
        y[i * d + k] = of(of(of(value / deviation) * gain[k]) + bias[k]);
      });
    }
    return y;
  }

  /** @type {Record<string, (i: number, n: number) => number>} */
  const POSITION_FUNCTIONS = {
    1: () => 1,
    i: (i) => i,
    "i^2": (i) => i ** 2,
    "i^3": (i) => i ** 3,
    "1/i": (i) => divided(1, i),
    "-1/i": (i) => divided(-1, i),
    "i/n": (i, n) => (i ? i / n : 0),
    "-i/n": (i, n) => (i ? -i / n : 0),
    "(-1)^i": (i) => (i % 2 ? -1 : 1),
  };

  /** @param {number} p @param {number} i */
  function divided(p, i) {
    if (!i) throw new Impossible("the position function 1/i has no value at i = 0");
    return p / i;
  }

  /**
   * The vector of a position i of an input of length n.
   * @param {Positions} positions @param {number} i @param {number} n @param {Format} format
   * @returns {number[] | Float64Array}
   */
  function positionVector(positions, i, n, format) {
    if (positions.kind === "functions") {
      // A quotient of whole numbers below 2²⁴ is never in the middle of two numbers of a narrow
      // format without being equal to it in float64, so the second rounding is harmless.
      return positions.names.map((name) => {
        if (name === null) return 0;
        const wave = positions.waves[name];
        return format.nearest(wave ? wave[((i % wave.length) + wave.length) % wave.length] : POSITION_FUNCTIONS[name](i, n));
      });
    }
    if (positions.kind === "parts") {
      return positions.parts.flatMap((part) => [...positionVector(part, i, n, format)]);
    }
    if (i < 1 || i > positions.vectors.shape[0]) throw new Impossible(`the model has no vector for position ${i}`);
    return rowOf(positions.vectors, i - 1, format);
  }

  /**
   * The embedded input.
   * @param {Embedding} embedding @param {number[]} rows @param {number} length @param {Format} format
   */
  function embed(embedding, rows, length, format) {
    const columns = embedding.vectors.shape[1];
    const z = new Float64Array(rows.length * columns);
    rows.forEach((symbol, row) => {
      z.set(rowOf(embedding.vectors, symbol, format), row * columns);
      if (!embedding.positions) return;
      const place = row + 1 - embedding.front.length;
      positionVector(embedding.positions, place, length, format).forEach((value, k) => {
        const at = row * columns + k;
        z[at] = format.store(format.partial(z[at] + value));
      });
    });
    return z;
  }

  /**
   * The work of a sublayer on the stream z: the vectors it reads, its heads, and the vectors that
   * the residual connection adds to the stream.
   * @param {Step} step @param {Float64Array} z @param {number} n @param {Format} format
   * @returns {Work}
   */
  function worked(step, z, n, format) {
    const read = step.before ? normalized(step.before, z, n, format) : z;
    if (step.network) {
      const units = hidden(step.network, read, n, format);
      const added = affine(format, units, n, step.network.W_2, step.network.b_2);
      return { read, heads: [], added };
    }
    const heads = step.heads.map((head) => attend(head, read, n, format));
    const outputs = step.heads.map((head, k) => headOutput(head, heads[k].c, n, format));
    return { read, heads, added: outputs.reduce((total, output) => add(format, total, output)) };
  }

  /**
   * Evaluate a model on one input, and keep the streams.
   * @param {Model} model @param {number[]} input rows of the symbols in `model.embedding.symbols`
   * @param {FormatName} name @param {Changes} [changes] @returns {Run}
   */
  function evaluate(model, input, name, changes = NOTHING) {
    model = Ablation.ablated(model, changes);
    const format = FORMATS[name], { embedding } = model, width = model.slots.length;
    const rows = [...embedding.front, ...input, ...embedding.back], n = rows.length;
    if (!n && model.read_out.at !== "every") throw new Impossible("this model needs at least one symbol");
    let z = embed(embedding, rows, input.length, format);
    /** @type {Float64Array[]} */
    const streams = [];
    /** @type {Work[]} */
    const work = [];
    const keep = (/** @type {number} */ after) => {
      for (const pin of changes.pins) {
        if (pin.after !== after) continue;
        const value = format.nearest(pin.value);
        if (!Number.isFinite(value)) throw new Impossible(`${pin.value} is not finite in ${name}`);
        for (let row = 0; row < n; row++) {
          if (pin.row === null || pin.row === row) z[row * width + pin.column] = value;
        }
      }
      streams.push(z);
    };
    keep(0);
    model.steps.forEach((step, k) => {
      if (step.kind !== "norm") {
        work[k] = worked(step, z, n, format);
        z = add(format, work[k].added, z);
      }
      if (step.after) z = normalized(step.after, z, n, format);
      keep(k + 1);
    });
    const [first, count] = rowsRead(model, input.length);
    const read = z.subarray(first * width, (first + count) * width);
    const values = affine(format, read, count, model.W_out, model.b_out);
    const answer = answerOf(model, values, count, input.length, format);
    return { model, format, rows, length: input.length, streams, work, values, first, count, answer };
  }

  return {
    NOTHING, affine, columnsOf, evaluate, headOutput, hidden, normalized, positionVector,
  };
})();
