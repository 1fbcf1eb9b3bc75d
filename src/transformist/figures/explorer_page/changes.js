"use strict";
/** What the reader changes in the model: numbers put in; heads, hidden units and slots switched off. */
const ModelChanges = (() => {
  const { h, signed, whole } = Elements;
  const { readNumber } = TypedNumbers;
  const { refusalOfSlots } = Ablation;

  /** @returns {Changes} */
  const none = () => ({ heads: [], units: [], slots: [], pins: [] });

  /** @param {Changes} changes */
  const isChanged = (changes) => Object.values(changes).some((list) => list.length);

  /** The changes of a page, which has state, model, names, and a function that computes. @param {any} page */
  function changesOf(page) {
    const { model, state } = page;
    const $ = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));

    /** Say what was done, after computing. @param {string} words */
    function done(words) {
      page.compute();
      $("told").textContent = words;
    }

    // --- numbers put in ----------------------------------------------------------------------

    /** The value that a pin has in the format. @param {Pin} pin */
    const rounded = (pin) => NumberFormats.FORMATS[state.format].nearest(pin.value);

    /** @param {Pin} pin */
    function pinWords(pin) {
      const value = whole(rounded(pin)), typed = signed(pin.words || whole(pin.value));
      const where = pin.row === null ? "at every position" : `at position ${page.positionOf(pin.row)}`;
      return `${page.slotName(pin.after, pin.column)} is ${typed}${value === typed ? "" : ` (${value} in ${state.format})`} ${where} after ${page.stepName(pin.after)}`;
    }

    /** Put the typed number at one row, or at every row. @param {number} step @param {number | null} row */
    function put(step, row) {
      const typed = readNumber($("value").value), { column } = state;
      const pin = "refusal" in typed ? null : { after: step, row, column, ...typed };
      const refusal = "refusal" in typed ? typed.refusal
        : pin && !Number.isFinite(rounded(pin)) ? `Nothing was put in: ${signed(typed.words)} is too large for ${state.format}.` : "";
      $("put-message").textContent = refusal;
      if (refusal) {
        $("told").textContent = "";
        $("value").setAttribute("aria-invalid", "true");
        return $("value").focus();
      }
      const isReplaced = (/** @type {Pin} */ each) => each.after === step && each.column === column && (row === null || each.row === row);
      const replaced = state.changes.pins.filter(isReplaced);
      state.changes.pins = [...state.changes.pins.filter((each) => !isReplaced(each)), pin];
      const isClamped = row !== null && state.changes.pins.some((each) => each.after === step && each.column === column && each.row === null);
      done([`${pinWords(pin)}.`,
        replaced.length ? `This replaces: ${replaced.map(pinWords).join("; ")}.` : "",
        isClamped ? "Elsewhere the slot stays clamped." : "",
        state.changes.slots.includes(column) ? "The slot is ablated, too: nothing is added to it, and the number is put in afterwards." : ""].filter(Boolean).join(" "));
    }

    /** The form for a number at the selected place. @param {number} step */
    function showForm(step) {
      const value = state.run.streams[step][state.row * model.slots.length + state.column];
      const off = state.changes.slots.includes(state.column);
      const reused = new Set(model.held.map((held) => held[state.column]).filter((name) => name !== "nothing")).size > 1;
      const refusal = reused ? "it holds one number after another" : refusalOfSlots(model.embedding.positions);
      $("put-message").textContent = "";
      $("pin").replaceChildren(
        h("form", { class: "line", onsubmit: (event) => { event.preventDefault(); put(step, state.row); } },
          h("label", { for: "value" }, "Put the number"),
          h("input", { type: "text", id: "value", autocomplete: "off", spellcheck: "false", "aria-describedby": "value-help put-message", value: Number.isFinite(value) ? String(value) : "0" }),
          h("button", { type: "submit", id: "pin-here" }, "Pin it here"),
          h("button", { type: "button", id: "clamp", onclick: () => put(step, null) }, "Clamp it at every position"),
          !refusal && h("button", { type: "button", id: "ablate", onclick: () => toggle("slots", state.column) }, off ? "Switch the slot on" : "Ablate the slot")),
        h("p", { class: "note", id: "value-help" }, `A decimal, or a fraction such as 1/3. A fraction is rounded once, to ${state.format}; a decimal is the nearest float64 first, as in Python.`),
        refusal ? h("p", { class: "note" }, `The slot cannot be ablated: ${refusal}.`) : "");
    }

    // --- parts switched off ------------------------------------------------------------------

    const NAMES = {
      heads: (/** @type {any} */ each) => `Head ${each[1]} of layer ${each[0]}`,
      units: (/** @type {any} */ each) => `Unit ${each[1]} of layer ${each[0]}`,
      slots: (/** @type {any} */ each) => `The slot ${model.slots[each]}`,
    };

    /** @param {"heads" | "units" | "slots"} kind @param {any} what */
    function partWords(kind, what) {
      return `${NAMES[kind](what)} is ${kind === "slots" ? "ablated" : "switched off"}`;
    }

    /** Switch a part off, or on again. @param {"heads" | "units" | "slots"} kind @param {any} what */
    function toggle(kind, what) {
      const list = state.changes[kind], is = (/** @type {any} */ each) => String(each) === String(what);
      const wasOff = list.some(is);
      state.changes[kind] = wasOff ? list.filter((each) => !is(each)) : [...list, what];
      const stays = kind === "slots" && !wasOff && state.changes.pins.filter((pin) => pin.column === what);
      done(wasOff ? `${NAMES[kind](what)} is on again.`
        : `${partWords(kind, what)}.${stays && stays.length ? ` What you put in stays, as numbers are put in after the ablation: ${stays.map(pinWords).join("; ")}.` : ""}`);
    }

    // --- the list ----------------------------------------------------------------------------

    function showList() {
      const { pins } = state.changes;
      const parts = ["heads", "units", "slots"].flatMap((kind) => state.changes[kind].map((each) => [partWords(/** @type {any} */ (kind), each), () => toggle(/** @type {any} */ (kind), each)]));
      const numbers = pins.map((pin) => [pinWords(pin), () => { state.changes.pins = pins.filter((each) => each !== pin); done(`Undone: ${pinWords(pin)}.`); }]);
      $("changes").replaceChildren(h("ul", {}, [...parts, ...numbers].map(([words, undo], k) =>
        h("li", {}, `${words} `, h("button", { type: "button", id: `undo-${k}`, "aria-label": `Undo: ${words}`, onclick: undo }, "undo")))));
      $("changes-help").textContent = isChanged(state.changes)
        ? "The changed model gives the answer above. First parts are switched off; then, after each step, numbers are put in, a later one over an earlier one. In Python: tf.ablate(…).run(x, patch={…})."
        : "None. Select a number to pin, clamp or ablate it; switch heads off at an attention step, and hidden units in the explanation of a number.";
      $("undo").hidden = !isChanged(state.changes);
    }

    function undoAll() {
      state.changes = none();
      done("All changes are undone.");
    }

    return { pinWords, showForm, showList, toggle, undoAll };
  }

  return { changesOf, isChanged, none };
})();
