"use strict";
/**
 * The guided path of a page: a question, and stops at which the answer shows.
 *
 * While a reader follows it, the text stays on top of the window and the page is scrolled so that the
 * number of which the text speaks stands below it.
 */
const GuidedPath = (() => {
  const { h } = Elements;

  /** @param {any} guide the question and its stops, or null @param {any} page */
  function guidedPath(guide, page) {
    const $ = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));
    let stop = -1;
    /** What the page showed before the path. @type {any} */
    let before = null;

    function button(text, id, act, disabled) {
      return h("button", { type: "button", id, disabled, onclick: act }, text);
    }

    function show() {
      $("guides").hidden = !guide;
      if (!guide) return;
      const at = guide.stops[stop], isLast = stop + 1 === guide.stops.length;
      $("guides").classList.toggle("followed", Boolean(at));
      const question = h("p", { class: "question" }, h("strong", {}, guide.question));
      if (!at) return $("guide").replaceChildren(question, button("Show me", "guide-start", () => go(0)));
      $("guide").replaceChildren(question, h("p", { id: "guide-text" }, at.text),
        h("div", { class: "line" }, button("Back", "guide-back", () => go(stop - 1), stop === 0),
          h("span", { class: "note" }, `${stop + 1} of ${guide.stops.length}`),
          isLast ? button("Begin again", "guide-on", () => go(0)) : button("Go on", "guide-on", () => go(stop + 1)),
          button(`Leave the path, back to ${before.text || "the empty string"}`, "guide-leave", leave)));
    }

    /** Say in the panel what the page shows: the string, the step and the answer. */
    function showWhere() {
      $("guide-where").textContent = guide && stop >= 0 ? page.where() : "";
    }

    /** @param {number} to */
    function go(to) {
      if (stop < 0) before = page.taken();
      stop = to;
      page.goToStop(guide.stops[stop]);
      show();
      showWhere();
      page.bringIntoSight(guide.stops[stop].step === "read-out", $("guides"));
      $("guide-on").focus({ preventScroll: true });
    }

    /** Bring back the string, the place and the changes that the page had before the path. */
    function leave() {
      stop = -1;
      page.restore(before);
      show();
      showWhere();
      document.documentElement.style.scrollPaddingTop = "";
      $("guide-start").focus();
    }

    return { show, showWhere };
  }

  return { guidedPath };
})();
