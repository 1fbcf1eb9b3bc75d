"use strict";
/** The view: the state of the page, what it shows, and what the reader does. */
(() => {
  const { arcs, cut, h, marginBar, matrix, short, signed, table, whole } = Elements;
  const { answerWords, comparedWords } = Comparison;
  const { isChanged, none } = ModelChanges;
  const data = JSON.parse(/** @type {any} */ (document.getElementById("data")).textContent);
  const { model } = data, width = model.slots.length, front = model.embedding.front.length;
  const WINDOW = 60, MOST_SLOTS = 40;
  /** Most symbols that are listed or marked, and most positions of a grid that has a panel beside it. */
  const MOST_LISTED = 200, MOST_BESIDE = 10;
  const $ = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));

  const state = {
    format: model.formats[0], symbols: /** @type {number[]} */ ([]), step: 0, row: front, column: 0, head: 0,
    changes: none(),
    /** @type {Run | any} */ run: null,
    /** The run in float64, with the same changes; null in float64. @type {Run | any} */ wide: null,
    /** The run without the changes; null where there are none. @type {Run | any} */ unchanged: null,
    /** The first place at which the format parts from the reference. @type {any} */ first: null,
  };

  // --- the input -----------------------------------------------------------------------------

  const isOfCharacters = model.embedding.inputs.every((k) => [...model.embedding.symbols[k]].length === 1);
  const numberOf = new Map(model.embedding.inputs.map((k) => [model.embedding.symbols[k], k]));
  const written = (symbols) => symbols.map((k) => model.embedding.symbols[k]).join(isOfCharacters ? "" : " ");

  /** Read the field: the input is taken if every symbol is known; else it is marked. */
  function readInput() {
    const text = $("input").value, tokens = isOfCharacters ? [...text] : text.split(/\s+/).filter(Boolean);
    const unknown = tokens.filter((token) => !numberOf.has(token));
    const at = tokens.indexOf(unknown[0]) + 1, from = Math.max(0, at - MOST_LISTED / 2), shown = tokens.slice(from, from + MOST_LISTED);
    $("marks").replaceChildren(unknown.length ? h("span", {}, from ? "… " : "", shown.map((token) => [numberOf.has(token) ? token : h("mark", {}, token), isOfCharacters ? "" : " "]), from + MOST_LISTED < tokens.length ? " …" : "") : "");
    if (unknown.length) {
      return refuse(`${JSON.stringify(unknown[0])} at position ${at} is no symbol of the model. Nothing is computed until it is removed.`);
    }
    if (tokens.length > model.longest) {
      return refuse(`The input must have at most ${model.longest} symbols${model.longest === model.max_length ? ", for which the model is built" : " in a page"}; it has ${tokens.length}.`);
    }
    state.symbols = tokens.map((token) => numberOf.get(token));
    compute();
  }

  function refuse(words) {
    state.run = null;
    $("message").textContent = words;
    $("input").setAttribute("aria-invalid", "true");
    for (const id of ["answer", "compared", "grid", "explanation", "pin", "put-message", "told", "head", "margins", "left-out"]) $(id).replaceChildren();
    $("attention").hidden = $("windows").hidden = true;
    changes.showList(); // what is refused because of a change can be undone
    guide.showWhere();
  }

  function compute() {
    try {
      state.run = Evaluator.evaluate(model, state.symbols, state.format, state.changes);
      state.wide = state.format === "float64" ? null : evaluated("float64", state.changes);
      state.unchanged = isChanged(state.changes) ? evaluated(state.format, Evaluator.NOTHING) : null;
    } catch (error) {
      if (!(error instanceof NumberFormats.Impossible)) throw error;
      return refuse(`Not computed: ${error.message}.`);
    }
    $("message").textContent = "";
    $("input").removeAttribute("aria-invalid");
    state.row = Math.min(state.row, Math.max(state.run.rows.length - 1, 0));
    state.first = firstDifference();
    show();
  }

  function evaluated(format, changes) {
    try {
      return Evaluator.evaluate(model, state.symbols, format, changes);
    } catch (error) {
      if (error instanceof NumberFormats.Impossible) return null;
      throw error;
    }
  }

  // --- names ---------------------------------------------------------------------------------

  const stepName = (step) => (step === 0 ? "the embedding" : model.steps[step - 1].name);
  const title = (text) => text[0].toUpperCase() + text.slice(1);
  const symbolAt = (row) => model.embedding.symbols[state.run.rows[row]];
  const rowName = (row) => `${symbolAt(row)} at position ${row + 1 - front}`;
  const slotName = (step, column) => (model.held[step][column] === "nothing" ? model.slots[column] : model.held[step][column]);

  const positionOf = (/** @type {number} */ row) => row + 1 - front;

  // --- what explanations, changes and the guided path ask of the page ---------------------------

  const page = {
    model, state, compute, positionOf, rowName, slotName, stepName,
    get run() { return state.run; },
    get changes() { return state.changes; },
    isOff: (kind, layer, number) => state.changes[kind].some(([l, k]) => l === layer && k === number),
    margins,
    unitButton: (layer, unit, off) => h("button", { type: "button", id: `unit-${layer}-${unit}`, "aria-label": `switch ${off ? "on" : "off"} unit ${unit}`, onclick: () => changes.toggle("units", [layer, unit]) }, off ? "switch on" : "switch off"),
    pinWords: (pin) => changes.pinWords(pin),
    where, taken, restore, goToStop, bringIntoSight,
  };
  const changes = ModelChanges.changesOf(page);
  const guide = GuidedPath.guidedPath(data.guide, page);

  /** The margins of the certificate at a place: `layer 0 unit 1`, also where more words follow. */
  function margins(place) {
    const found = (data.certificates[state.format] || {}).demands || [];
    const here = found.filter(([where]) => where === place || where.startsWith(`${place}:`));
    return here.length ? h("div", { class: "bars" }, widest(here).map(([where, what, error, allowed]) =>
      h("p", { class: "note" }, `Certificate for N = ${data.certificates[state.format].max_length}, ${where}, ${what}: `, marginBar(error, allowed)))) : null;
  }

  /** Of each quantity the margin of which the largest share is used. */
  function widest(demands) {
    const share = ([, , error, allowed]) => (error === 0 || allowed === null ? 0 : error / allowed);
    const best = new Map();
    for (const demand of demands) {
      const key = `${demand[0]}\n${demand[1]}`;
      if (!best.has(key) || share(demand) > share(best.get(key))) best.set(key, demand);
    }
    return [...best.values()];
  }

  // --- showing -------------------------------------------------------------------------------

  /** Draw the page, and keep the focus where it was, or near it. */
  function show() {
    const { id } = /** @type {any} */ (document.activeElement);
    showAnswer();
    showSteps();
    if (state.run) {
      showGrid();
      showCell();
      showHeads();
      changes.showList();
      showMargins();
    }
    guide.showWhere();
    centreArcs(); // after all is drawn, so that the layout is computed once
    keepFocus(id);
  }

  const OTHER_WAY = { next: "previous", previous: "next", later: "earlier", earlier: "later" };

  /** Focus the element that has taken the place of the one that had the focus. @param {string} id */
  function keepFocus(id) {
    const canHold = (/** @type {any} */ element) => element && !element.disabled && element.getClientRects().length;
    const isKept = document.activeElement !== document.body && canHold(document.activeElement);
    if (isKept || !id) return;
    const undone = id.startsWith("undo") && [...$("changes").querySelectorAll("button")].pop();
    const found = [$(id), $(OTHER_WAY[id]), undone, $("changes-heading")].find(canHold);
    if (found) found.focus({ preventScroll: found.id === id });
  }

  function showAnswer() {
    const { run, format, first } = state, { answer } = run, { exact } = data, hasChanges = isChanged(state.changes);
    $("answer").className = answer === true ? "accepted" : answer === false ? "rejected" : "";
    $("answer").replaceChildren("Answer: ", h("strong", {}, answerWords(answer)), ` in ${format}${hasChanges ? ", with your changes" : ""}`);
    const parts = [];
    if (hasChanges) parts.push(state.unchanged ? comparedWords("The model without changes", answer, state.unchanged.answer, run.format) : `Without changes the model cannot be computed in ${format}.`);
    else if (isInitial() && exact.answer !== null) parts.push(comparedWords("Exact arithmetic", answer, exact.answer, run.format));
    else if (state.wide) parts.push(comparedWords("float64", answer, state.wide.answer, run.format));
    parts.push(first ? `${format} parts from ${referenceName()} after ${stepName(first.step)}: ${slotName(first.step, first.column)} for ${rowName(first.row)} is ${whole(run.streams[first.step][first.at])}, but ${referenceWords(first.step, first.at)}.`
      : referenceName() ? `Every number is that of ${referenceName()}, rounded to ${format}.` : withoutReference());
    $("compared").textContent = parts.join(" ");
  }

  /** True for the input that Python evaluated exactly. */
  const isInitial = () => !isChanged(state.changes) && state.symbols.join() === data.input.join();

  /** Where the numbers come from that those of the format are compared with; null for nowhere. */
  const referenceName = () => (isInitial() && data.exact.streams ? "exact arithmetic" : state.wide ? "float64" : null);

  /** Why the numbers are compared with nothing. */
  function withoutReference() {
    const { exact } = data;
    if (state.format !== "float64") return "The numbers are compared with nothing: float64 cannot compute them.";
    if (!exact.streams) return `The numbers are compared with nothing, as there is no exact run: ${exact.refusal}.`;
    if (isChanged(state.changes)) return "The numbers are compared with nothing, as the exact ones in the page are those without changes.";
    return `The numbers are compared with nothing: the page has exact ones only for the string with which it began, ${written(data.input) || "the empty one"}.`;
  }

  /** The streams that the format is compared with: of exact arithmetic, or of float64. */
  const referenceStreams = () => ({ "exact arithmetic": data.exact.streams, float64: state.wide && state.wide.streams })[String(referenceName())] || null;

  /** The number of the reference in words, and the number of the format that is nearest to it. */
  function referenceWords(step, at) {
    const { nearest, name } = state.run.format, isExact = referenceName() === "exact arithmetic";
    const words = isExact ? signed(data.exact.words[step][at]) : whole(state.wide.streams[step][at]);
    const rounded = whole(nearest(referenceStreams()[step][at]));
    const digits = words.startsWith("≈") ? `${words} (in six digits)` : words;
    return `${referenceName()} has ${digits}${rounded === words ? "" : `, to which ${rounded} is nearest in ${name}`}`;
  }

  /** True where a number is not the rounded one of the reference. */
  function isDifferent(step, at, streams) {
    return streams !== null && state.run.format.nearest(streams[step][at]) !== state.run.streams[step][at];
  }

  /** The first place at which the format parts from the reference. */
  function firstDifference() {
    const streams = referenceStreams();
    for (let step = 0; step < state.run.streams.length; step++) {
      const at = state.run.streams[step].findIndex((_, k) => isDifferent(step, k, streams));
      if (at >= 0) return { step, at, row: Math.floor(at / width), column: at % width };
    }
    return null;
  }

  function showSteps() {
    const last = model.steps.length + 1; // the read-out
    $("slider").max = String(last);
    $("slider").value = String(state.step);
    const name = state.step === last ? "read-out" : stepName(state.step);
    $("slider").setAttribute("aria-valuetext", name);
    $("previous").disabled = state.step === 0;
    $("next").disabled = state.step === last;
    [...$("steps").querySelectorAll("button")].forEach((button, k) => {
      if (k === state.step) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
    $("stream").textContent = state.step === last ? "The stream at the read-out" : `The stream after ${stepName(state.step)}`;
  }

  /** The stream that is shown; at the read-out it is the last one. */
  const shownStream = () => Math.min(state.step, model.steps.length);

  function showGrid() {
    const { run } = state, step = shownStream(), n = run.rows.length;
    const start = Math.floor(state.row / WINDOW) * WINDOW, stop = Math.min(n, start + WINDOW);
    $("windows").hidden = n <= WINDOW;
    $("window").textContent = `positions ${start + 1 - front} to ${stop - front} of ${run.length}`;
    $("earlier").disabled = start === 0;
    $("later").disabled = stop === n;
    const rows = [...Array(stop - start).keys()].map((k) => k + start);
    const heading = h("thead", {}, h("tr", { role: "row" }, h("th", { scope: "col", role: "columnheader" }, "slot"),
      rows.map((row) => h("th", { scope: "col", role: "columnheader" }, h("span", { class: "symbol" }, symbolAt(row)), String(row + 1 - front)))));
    const reference = referenceStreams();
    const slots = shownSlots();
    $("work").classList.toggle("beside", n <= MOST_BESIDE);
    $("left-out").textContent = slots.length < width ? `${slots.length} of the ${width} slots are shown, first those that this step changed.` : "";
    const body = slots.map((column) => {
      const largest = rows.map((row) => Math.abs(run.streams[step][row * width + column])).filter(Number.isFinite).reduce((a, b) => Math.max(a, b), 0);
      const idle = model.held[step][column] === "nothing";
      return h("tr", { role: "row" }, h("th", { scope: "row", role: "rowheader", title: slotName(step, column) }, cut(idle ? `${model.slots[column]} (unused)` : slotName(step, column))),
        rows.map((row) => cell(step, row, column, largest, idle, reference)));
    });
    $("grid").replaceChildren(heading, h("tbody", {}, body));
  }

  /** The slots of the grid, in order: all, or of many the one selected and those the step changed. */
  function shownSlots() {
    const every = [...model.slots.keys()], step = shownStream(), { streams } = state.run;
    if (width <= MOST_SLOTS) return every;
    const isNew = new Set();
    streams[step].forEach((value, at) => { if (step ? value !== streams[step - 1][at] : value !== 0) isNew.add(at % width); });
    const first = every.filter((column) => column === state.column), changed = every.filter((column) => isNew.has(column));
    return [...new Set([...first, ...changed, ...every])].slice(0, MOST_SLOTS).sort((a, b) => a - b);
  }

  function cell(step, row, column, largest, idle, reference) {
    const { streams } = state.run, at = row * width + column, value = streams[step][at];
    const selected = row === state.row && column === state.column;
    const isNew = step > 0 && value !== streams[step - 1][at];
    const classes = [isNew && "changed", isDifferent(step, at, reference) && "differs", (idle || value === 0) && "idle",
      state.changes.pins.some((pin) => pin.after === step && pin.column === column && (pin.row === null || pin.row === row)) && "pinned"];
    const strength = largest > 0 && value !== 0 && Number.isFinite(value) ? 0.08 + 0.22 * Math.abs(value) / largest : 0;
    const shade = strength ? `background: rgba(var(--${value > 0 ? "plus" : "minus"}), ${strength.toFixed(2)})` : null;
    return h("td", { role: "gridcell", class: classes.filter(Boolean).join(" ") || null, style: shade, tabindex: selected ? 0 : -1,
      "aria-selected": selected ? "true" : "false", "data-row": row, "data-column": column }, short(value));
  }

  function showCell() {
    const step = shownStream();
    const isReadOut = state.step > model.steps.length;
    $("why").textContent = isReadOut ? "How the answer came to be" : "How this number came to be";
    if (!state.run.rows.length) {
      $("pin").replaceChildren();
      return $("explanation").replaceChildren("The input is empty.");
    }
    const parts = isReadOut ? Explanations.explainAnswer(page) : Explanations.explain(page, step, state.row, state.column);
    if (referenceName() && !isReadOut) parts.push(h("p", { class: "note" }, `${title(referenceWords(step, state.row * width + state.column))}.`));
    $("explanation").replaceChildren(...parts.flat(Infinity).filter((part) => part));
    if (isReadOut) $("pin").replaceChildren();
    else changes.showForm(step);
  }

  function showHeads() {
    const step = shownStream(), made = step > 0 && state.step <= model.steps.length ? model.steps[step - 1] : null;
    $("attention").hidden = !made || made.kind !== "attention" || !state.run.rows.length;
    if ($("attention").hidden) return;
    state.head = Math.min(state.head, made.heads.length - 1);
    const off = page.isOff("heads", made.layer, state.head);
    $("attention-heading").textContent = `Attention of ${rowName(state.row)}`;
    $("heads").replaceChildren(...made.heads.map((_, k) => h("button", { type: "button", id: `head-${k}`, "aria-pressed": String(k === state.head), onclick: () => { state.head = k; show(); } }, `Head ${k}`)),
      h("button", { type: "button", id: "switch-head", onclick: () => changes.toggle("heads", [made.layer, state.head]) }, off ? `Switch head ${state.head} on` : `Switch head ${state.head} off`));
    const head = made.heads[state.head], attended = state.run.work[step - 1].heads[state.head], n = state.run.rows.length;
    const start = Math.floor(state.row / WINDOW) * WINDOW, rows = [...Array(Math.min(n - start, WINDOW)).keys()].map((k) => k + start);
    const weights = rows.map((row) => attended.weights(row)), own = weights[state.row - start];
    const keys = [...own.keys()].filter((j) => own[j] !== 0);
    const most = keys.length ? keys.reduce((a, b) => (own[b] > own[a] ? b : a)) : -1;
    const told = keys.length === 1 ? `${title(rowName(state.row))} attends to ${rowName(most)} alone.` : keys.length ? `${title(rowName(state.row))} attends to ${keys.length} positions, ${keys.every((j) => own[j] === own[most]) ? `each with weight ${short(own[most])}` : `most to ${rowName(most)} with weight ${short(own[most])}`}.` : `${title(rowName(state.row))} attends to no position.`;
    const outside = keys.filter((j) => j < start || j >= start + WINDOW).length;
    const labels = rows.map((row) => symbolAt(row));
    $("head").replaceChildren(h("div", {}, h("p", {}, `${told}${outside ? ` ${outside} of them are not drawn.` : ""}${off ? " The head is switched off: what it mixes is not added." : ""}`),
      h("p", { class: "note" }, `Weighting ${head.weighting}: ${Glossary.WEIGHTINGS[head.weighting]}. Mask ${head.mask}: ${Glossary.MASKS[head.mask]}.`),
      h("div", { class: "wide", id: "arcs", tabindex: 0, role: "region", "aria-label": "Arcs of the selected position" }, arcs(rows.map((row) => ({ label: symbolAt(row), weight: own[row] })), state.row - start, told)),
      scoresTable(attended, keys)),
      h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Attention weights" }, h("p", { class: "note" }, "Queries are rows, keys are columns; the darker, the more weight."),
        matrix(weights.map((row) => rows.map((j) => row[j])), labels, labels, state.row - start, `Attention weights of head ${state.head}. ${told}`)));
  }

  /** Scroll the arcs, where they are wider than their box: the selected position stands in the middle. */
  function centreArcs() {
    const box = $("arcs"), label = box && box.querySelector("text.query");
    if (label) box.scrollLeft += label.getBoundingClientRect().left - box.getBoundingClientRect().left - box.clientWidth / 2;
  }

  function scoresTable(attended, keys) {
    const scores = attended.scores(state.row);
    const shown = keys.slice(0, 12);
    return keys.length ? table(`Scores of the keys with weight${keys.length > 12 ? ", the first 12" : ""}`, ["Position", "score", "weight"],
      shown.map((j) => [rowName(j), whole(scores[j]), short(attended.weights(state.row)[j])])) : null;
  }

  function showMargins() {
    const found = data.certificates[state.format];
    if (!found) return $("margins").replaceChildren(h("p", { class: "note" }, data.uncertified[state.format]));
    const { layer, kind } = model.steps[shownStream() - 1] || { layer: -1, kind: "" };
    const start = state.step > model.steps.length ? "read-out" : `layer ${layer} ${kind === "attention" ? "head" : "unit"}`;
    const here = widest(found.demands.filter(([place]) => place.startsWith(start)));
    const elsewhere = [...new Set(found.demands.map(([place]) => stepOfPlace(place)))];
    $("margins").replaceChildren(h("p", {}, `${found.words} The smallest margin is at ${found.limiting}.${state.symbols.length > found.max_length ? ` It says nothing of this string, which has ${state.symbols.length} symbols.` : ""}`),
      h("div", {}, here.length ? here.map(([place, what, error, allowed]) => h("p", {}, `${place}: ${what}`, marginBar(error, allowed)))
        : h("p", { class: "note" }, `No margin of the certificate is at this step. Its ${found.demands.length} margins are at ${elsewhere.join(", ")}.`)),
      h("p", { class: "note" }, "A bar is the error bound; the line is the error allowed, below which every decision is the exact one. The scale is logarithmic. Certificates speak of the model without changes."));
  }

  /** The step that a place of a certificate belongs to. @param {string} place */
  function stepOfPlace(place) {
    const found = /^layer (\d+) (head|unit)/.exec(place);
    return found ? `layer ${found[1]} ${found[2] === "head" ? "attention" : "feed-forward"}` : place.split(":")[0];
  }

  // --- what the guided path does ----------------------------------------------------------------

  /** The state of the page, to be brought back. */
  function taken() {
    const { step, row, column, head, changes: { heads, units, slots, pins } } = state;
    return { text: $("input").value, step, row, column, head, changes: { heads, units, slots, pins } };
  }

  /** @param {any} before */
  function restore(before) {
    const { text, ...rest } = before;
    Object.assign(state, rest);
    $("input").value = text;
    readInput();
  }

  /** Bring the page to the state of a stop of the guided path. */
  function goToStop(at) {
    state.changes = { ...none(), heads: at.heads || [] };
    state.step = at.step === "read-out" ? model.steps.length + 1 : at.step === "embedding" ? 0 : 1 + model.steps.findIndex((each) => each.name === at.step);
    state.row = at.position - 1 + front;
    state.column = model.slots.indexOf(at.slot);
    state.head = at.head || 0;
    $("input").value = at.input;
    readInput();
  }

  /** What the page shows, in a line. */
  function where() {
    if (!state.run) return "Nothing is computed.";
    const { heads } = state.changes, off = heads.map(([layer, k]) => `, head ${k} of layer ${layer} switched off`).join("");
    return `Shown: ${written(state.symbols) || "the empty string"}, ${state.step > model.steps.length ? "the read-out" : stepName(state.step)}${off}. Answer: ${answerWords(state.run.answer)}.`;
  }

  // --- what the reader does -------------------------------------------------------------------

  function goTo(step) {
    state.step = Math.min(Math.max(step, 0), model.steps.length + 1);
    if (state.run) show(); else showSteps();
  }

  function select(row, column, isFocused) {
    state.row = Math.min(Math.max(row, 0), state.run.rows.length - 1);
    state.column = Math.min(Math.max(column, 0), width - 1);
    state.head = headOf(state.column);
    $("told").textContent = "";
    show();
    if (isFocused) focusCell();
  }

  /** The head that is drawn for a slot: the one drawn now if it writes there, else the first that does. */
  function headOf(column) {
    const { heads } = model.steps[shownStream() - 1] || { heads: [] };
    const writes = heads.map((head) => Evaluator.columnsOf(head.W_O || head.W_V, column, NumberFormats.FORMATS.float64).length > 0);
    return writes[state.head] || !writes.includes(true) ? state.head : writes.indexOf(true);
  }

  function focusCell() {
    const found = $("grid").querySelector('td[aria-selected="true"]');
    if (found) found.focus();
  }

  /**
   * Scroll to the number of a stop, or to the explanation, unless the top of the page shows it: below the
   * panel of the guided path, and right of the names of the slots.
   * @param {boolean} isAnswer @param {any} panel
   */
  function bringIntoSight(isAnswer, panel) {
    const cell = $("grid").querySelector('td[aria-selected="true"]'), box = $("grid").parentElement;
    if (!cell) return;
    const names = $("grid").querySelector("tbody th").offsetWidth, left = cell.offsetLeft, right = left + cell.offsetWidth;
    if (right > box.scrollLeft + box.clientWidth) box.scrollLeft = right - box.clientWidth;
    else if (left < box.scrollLeft + names) box.scrollLeft = left - names;
    const first = isAnswer ? $("why") : $("stream"), last = isAnswer ? $("explanation").querySelector("tbody") || first : cell;
    const top = panel.offsetHeight + 8; // of what the panel leaves free
    document.documentElement.style.scrollPaddingTop = `${top}px`;
    window.scrollTo(0, 0);
    if (last.getBoundingClientRect().bottom < window.innerHeight) return;
    window.scrollBy(0, first.getBoundingClientRect().top - top);
    window.scrollBy(0, Math.max(0, last.getBoundingClientRect().bottom + 8 - window.innerHeight));
  }

  const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], Home: [-1e9, 0], End: [1e9, 0] };

  function onKey(event) {
    const move = MOVES[event.key];
    const slots = state.run ? shownSlots() : [];
    if (move) select(state.row + move[0], slots[Math.min(Math.max(slots.indexOf(state.column) + move[1], 0), slots.length - 1)], true);
    else if (event.key === "PageDown" || event.key === "PageUp") {
      goTo(state.step + (event.key === "PageDown" ? 1 : -1));
      focusCell();
    } else return;
    event.preventDefault();
  }

  function start() {
    const { inputs } = model.embedding, listed = inputs.slice(0, MOST_LISTED).map((k) => model.embedding.symbols[k]).join(" ");
    $("title").textContent = data.title;
    $("claim").textContent = data.claim && `What it computes: ${data.claim.replace(/\.$/, "")}.`;
    $("size").textContent = data.size;
    $("words").append(Glossary.list(model));
    $("alphabet").textContent = `Symbols: ${listed}${inputs.length > MOST_LISTED ? `, and ${inputs.length - MOST_LISTED} others` : ""}${isOfCharacters ? "" : ", with spaces between them"}. At most ${model.longest} of them${model.embedding.front.length ? `; the model puts ${model.embedding.front.map((k) => model.embedding.symbols[k]).join(" ")} in front` : ""}.`;
    $("format").replaceChildren(...model.formats.map((name) => h("option", { value: name }, name)));
    $("steps").replaceChildren(...["embedding", ...model.steps.map(({ name }) => name), "read-out"].map((name, k) =>
      h("li", {}, h("button", { type: "button", onclick: () => goTo(k) }, name))));
    $("input").value = written(data.input);
    $("input").addEventListener("input", readInput);
    $("format").addEventListener("change", () => { state.format = $("format").value; readInput(); });
    $("slider").addEventListener("input", () => goTo(Number($("slider").value)));
    $("previous").addEventListener("click", () => goTo(state.step - 1));
    $("next").addEventListener("click", () => goTo(state.step + 1));
    $("earlier").addEventListener("click", () => select((Math.floor(state.row / WINDOW) - 1) * WINDOW, state.column));
    $("later").addEventListener("click", () => select((Math.floor(state.row / WINDOW) + 1) * WINDOW, state.column));
    $("undo").addEventListener("click", changes.undoAll);
    $("grid").addEventListener("keydown", onKey);
    $("grid").addEventListener("click", (event) => {
      const found = event.target.closest("td");
      if (found) select(Number(found.dataset.row), Number(found.dataset.column), true);
    });
    $("main").hidden = false;
    readInput();
    guide.show();
    /** @type {any} */ (window).explorer = { model, state, evaluate: (input, format, changes) => Evaluator.evaluate(model, input, format, changes) };
    /** @type {any} */ (window).explorerIsReady = true;
  }

  if (/** @type {any} */ (window).explorerIsSupported) start();
})();
