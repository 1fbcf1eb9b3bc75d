"use strict";
/** Explanations of a number: the weights, units and positions that it was made of. */
const Explanations = (() => {
  const { h, marginBar, short, table, whole } = Elements;
  const MOST_TERMS = 12;

  /**
   * The entry of a matrix in words: exact where it was given so, else its digits.
   * @param {Matrix} matrix
   */
  function entry(matrix, row, column, format) {
    const place = matrix.at.indexOf(row * matrix.shape[1] + column);
    if (place < 0) return { value: 0, words: "0" };
    const value = (matrix[format.name] || matrix.float64)[place];
    return { value, words: matrix.exact ? `${matrix.exact[place]}`.replace("-", "−") : whole(value) };
  }

  /** The terms of one row of W x + b in words. @param {(column: number) => string} name */
  function terms(format, W, b, row, x, name) {
    const parts = Evaluator.columnsOf(W, row, format).map((column) => {
      const { words } = entry(W, row, column, format);
      const factor = words === "1" ? "" : words === "−1" ? "−" : `${words} · `;
      return `${factor}${name(column)} (${short(x[column])})`;
    });
    const bias = b && entry(b, 0, row, format);
    if (bias && (bias.value !== 0 || !parts.length)) parts.push(bias.words);
    return parts.join(" + ").replaceAll("+ −", "− ") || "0";
  }

  /**
   * How the number at (step, row, column) came to be.
   * @param {any} page the model, its run, the changes, the margins of the format, names of rows
   */
  function explain(page, step, row, column) {
    const { model, run } = page, width = model.slots.length;
    const value = run.streams[step][row * width + column];
    const slot = model.held[step][column] === "nothing" ? model.slots[column] : model.held[step][column];
    const head = h("p", { class: "lead" },
      h("strong", {}, `${slot} = ${whole(value)}`), ` for ${page.rowName(row)}, after ${page.stepName(step)}.`);
    // Of several numbers put in at one place the last one counts.
    const pinned = page.changes.pins.filter((pin) => pin.after === step && pin.column === column && (pin.row === null || pin.row === row)).pop();
    if (pinned) return [head, h("p", {}, `You put it there: ${page.pinWords(pinned)}.`)];
    const off = page.changes.slots.includes(column) && h("p", {}, "The slot is ablated: nothing is added to it.");
    if (step === 0) return [head, off || fromEmbedding(page, row, column)];
    const { kind, before, after } = model.steps[step - 1];
    const was = run.streams[step - 1][row * width + column];
    const from = kind !== "norm" && h("p", {}, `It was ${whole(was)} before; this ${kind === "attention" ? "attention" : "network"} adds ${whole(run.work[step - 1].added[row * width + column])}${after ? ", and a norm follows" : ""}.`);
    const parts = kind === "attention" ? fromHeads : kind === "norm" ? () => [] : fromUnits;
    return [head, from, off || [before && normWords(page, step, row), parts(page, step, row, column)], after && normWords(page, step, row, true)];
  }

  function normWords(page, step, row, isAfter) {
    const { before, after, kind } = page.model.steps[step - 1], parts = [], n = page.run.rows.length;
    const format = page.run.format, width = page.model.slots.length, z = page.run.streams[step - 1];
    const vectors = !isAfter ? z : kind === "norm" ? z
      : z.map((_, k) => format.store(format.partial(z[k] + page.run.work[step - 1].added[k])));
    Evaluator.normalized(isAfter ? after : before, vectors, n, format, parts);
    return h("p", {}, `The norm ${isAfter ? "after" : "before"} it subtracts the mean ${short(parts[row].mean)} of the vector at this position and divides by ${short(parts[row].deviation)}; then it multiplies by the gain and adds the bias.`);
  }

  function fromEmbedding(page, row, column) {
    const { embedding } = page.model, { format, rows, length } = page.run;
    const word = entry(embedding.vectors, rows[row], column, format);
    const place = row + 1 - embedding.front.length;
    const parts = [h("p", {}, `The symbol ${embedding.symbols[rows[row]]} writes ${word.words} there.`)];
    if (embedding.positions) {
      const added = Evaluator.positionVector(embedding.positions, place, length, format)[column];
      const { kind, names } = embedding.positions;
      const formula = kind === "functions" && names[column] ? `${names[column]} at i = ${place}, n = ${length}: ` : "";
      if (added !== 0 || formula) parts.push(h("p", {}, `The position adds ${formula}${whole(added)}.`));
    }
    return parts;
  }

  function fromHeads(page, step, row, column) {
    const made = page.model.steps[step - 1], format = page.run.format, n = page.run.rows.length;
    const width = page.model.slots.length;
    const found = made.heads.map((head, number) => {
      const W = head.W_O || head.W_V, writes = Evaluator.columnsOf(W, column, format);
      const bias = entry(head.b_O, 0, column, format);
      if (!writes.length && bias.value === 0) return null;
      const name = `Head ${number} (${head.weighting}, mask ${head.mask})`;
      if (page.isOff("heads", made.layer, number)) return h("p", {}, `${name} is switched off and adds 0.`);
      const run = page.run.work[step - 1].heads[number];
      const output = Evaluator.headOutput(page.run.model.steps[step - 1].heads[number], run.c, n, format)[row * width + column];
      const mixed = head.W_O ? writes : [column];
      const sum = head.W_O ? terms(format, head.W_O, head.b_O, column, run.c.subarray(row * run.width, (row + 1) * run.width), (m) => `mixed value ${m}`) : `the mixed value ${column}`;
      return [h("p", {}, h("strong", {}, name), ` adds ${whole(output)} = ${sum}.`),
        mixed.map((m) => mixedTable(page, head, run, row, m, step)),
        page.margins(`layer ${made.layer} head ${number}`)];
    });
    return found.every((each) => each === null) ? h("p", {}, "No head writes to this slot.") : found;
  }

  /** One coordinate of a head's mixed value, position by position. */
  function mixedTable(page, head, run, row, m, step) {
    const format = page.run.format, weights = run.weights(row);
    const keys = [...weights.keys()].filter((j) => weights[j] !== 0);
    if (!keys.length) return h("p", {}, "No position may be attended to from here, so the mixed values are 0.");
    const largest = [...keys].sort((a, b) => weights[b] - weights[a]).slice(0, MOST_TERMS).sort((a, b) => a - b);
    const rows = largest.map((j) => {
      const value = run.v[j * run.width + m];
      return [page.rowName(j), short(weights[j]), short(value), short(format.store(format.partial(weights[j] * value)))];
    });
    const rest = keys.length > largest.length ? ` The other ${keys.length - largest.length} weights are left out.` : "";
    const all = keys.length > 1 && keys.every((j) => weights[j] === weights[keys[0]]) ? ` All ${keys.length} weights are equal.` : "";
    return table(`Mixed value ${m} = ${whole(run.c[row * run.width + m])}: the sum of weight × value, where the value is ${formula(head.W_V, head.b_V, m, page, step, format)}.${all}${rest}`,
      ["Position", "weight", "value", "product"], rows);
  }

  /** One row of W x + b as a formula. */
  function formula(W, b, row, page, step, format) {
    const held = page.model.held[step - 1];
    const parts = Evaluator.columnsOf(W, row, format).map((column) => {
      const { words } = entry(W, row, column, format);
      const name = page.model.steps[step - 1].before ? `normed ${column}` : held[column];
      return words === "1" ? name : words === "−1" ? `−${name}` : `${words} · ${name}`;
    });
    const bias = entry(b, 0, row, format);
    if (bias.value !== 0 || !parts.length) parts.push(bias.words);
    return parts.join(" + ").replaceAll("+ −", "− ");
  }

  function fromUnits(page, step, row, column) {
    const { network, layer, before } = page.model.steps[step - 1], format = page.run.format, n = page.run.rows.length;
    const x = page.run.work[step - 1].read, d = x.length / n, vector = x.subarray(row * d, (row + 1) * d);
    const values = Evaluator.hidden(network, vector, 1, format);
    const name = (k) => (before ? `normed ${k}` : page.model.held[step - 1][k]);
    const writes = Evaluator.columnsOf(network.W_2, column, format);
    const bias = entry(network.b_2, 0, column, format);
    if (!writes.length && bias.value === 0) return h("p", {}, "No hidden unit writes to this slot.");
    const rows = writes.map((unit) => {
      const off = page.isOff("units", layer, unit), value = off ? 0 : values[unit];
      const factor = entry(network.W_2, column, unit, format);
      const gate = network.activation === "relu" ? "ReLU" : network.activation;
      return [[`unit ${unit} `, page.unitButton(layer, unit, off)], off ? "switched off" : `${gate}(${terms(format, network.W_1, network.b_1, unit, vector, name)}) = ${short(value)}`,
        factor.words, short(format.store(format.partial(factor.value * value)))];
    });
    return [table(`Hidden units that write to this slot${bias.value ? `; the bias adds ${bias.words}` : ""}`,
      ["Unit", "Its value", "weight", "product"], rows),
      writes.map((unit) => page.margins(`layer ${layer} unit ${unit}`))];
  }

  /** The rows of the read-out that are shown: all, or of many the largest. @param {Float64Array} y */
  function shownRows(y) {
    const rows = [...y.keys()];
    return y.length <= MOST_TERMS ? rows : rows.sort((a, b) => y[b] - y[a] || a - b).slice(0, MOST_TERMS).sort((a, b) => a - b);
  }

  /** How the answer came to be. */
  function explainAnswer(page) {
    const { model, run } = page, width = model.slots.length, k = model.W_out.shape[0], { format } = run;
    const held = model.held[model.held.length - 1], list = [];
    // The last rows that are read: those of a tagger are as many as the input is long.
    const from = Math.max(0, run.count - MOST_TERMS);
    for (let each = from; each < run.count; each++) {
      const row = run.first + each, vector = run.streams[run.streams.length - 1].subarray(row * width, (row + 1) * width);
      for (const m of shownRows(run.values.subarray(each * k, (each + 1) * k))) {
        list.push([page.rowName(row), model.rows[m], terms(format, model.W_out, model.b_out, m, vector, (c) => held[c]), short(run.values[each * k + m])]);
      }
    }
    const which = `${from ? `, at the last ${MOST_TERMS} positions` : ""}${k > MOST_TERMS ? `, the largest ${MOST_TERMS} of ${k} at each` : ""}`;
    const rule = { Binary: "The string is accepted if the value is above 0.", MultiClass: "The label with the largest value is the answer; of equal ones the first.",
      NearZero: "The string is accepted if the values are nearer to 0 than half of the least magnitude that they can have else.",
      NearestFraction: "The answer is the nearest fraction that a mean of these positions can be.",
      LanguageModel: "The answer is the softmax of the values.", RealVector: "The values are the answer." }[model.read_out.kind] || "Each answer has values of its own.";
    return [h("p", {}, rule), table(`The values that are read out${which}`, ["Position", "Row", "Sum", "value"], list), page.margins("read-out")];
  }

  return { explain, explainAnswer };
})();
