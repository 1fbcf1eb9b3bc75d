"use strict";
/** Elements of the page, numbers in words, and small drawings; nothing here knows the model. */
const Elements = (() => {
  const SVG = "http://www.w3.org/2000/svg";

  /**
   * An element of HTML. A key that begins with "on" is an event, true and false are attributes
   * that are there or not.
   * @param {string} tag @param {Record<string, any>} [attributes] @param {...any} children
   */
  function h(tag, attributes, ...children) {
    return filled(document.createElement(tag), attributes, children);
  }

  /** An element of SVG. @param {string} tag @param {Record<string, any>} [attributes] */
  function svg(tag, attributes, ...children) {
    return filled(document.createElementNS(SVG, tag), attributes, children);
  }

  function filled(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value != null) element.setAttribute(name, value);
    }
    for (const child of children.flat(Infinity)) if (child != null && child !== false) element.append(child);
    return element;
  }

  /** A number in a cell, in four digits. @param {number} x */
  function short(x) {
    if (Number.isInteger(x) && Math.abs(x) < 1e6) return signed(String(x === 0 ? 0 : x));
    if (!Number.isFinite(x)) return signed(String(x).replace("Infinity", "∞"));
    const text = Math.abs(x) < 1e-3 || Math.abs(x) >= 1e6 ? x.toExponential(2) : String(Number(x.toPrecision(4)));
    return signed(text);
  }

  /** A number with all its digits. @param {number} x */
  function whole(x) {
    return signed(String(x === 0 ? 0 : x).replace("Infinity", "∞"));
  }

  /** With the sign − instead of the hyphen. @param {string} text */
  function signed(text) {
    return text.replace(/-/g, "−");
  }

  /**
   * Arcs from one position to the positions that it attends to.
   * @param {{label: string, weight: number}[]} keys @param {number} query place among the keys
   * @param {string} description
   */
  function arcs(keys, query, description) {
    const step = Math.max(16, Math.min(44, 900 / Math.max(keys.length, 1)));
    const far = keys.reduce((most, { weight }, k) => (weight > 0.01 ? Math.max(most, Math.abs(k - query)) : most), 1);
    const width = step * keys.length + 20, height = Math.min(150, 54 + (step * far) / 3);
    const x = (k) => 10 + step * (k + 0.5);
    const lines = keys.map(({ weight }, k) => {
      if (!(weight > 0)) return null;
      const top = height - 26 - Math.min(height - 36, 18 + (Math.abs(k - query) * step) / 3);
      const path = k === query
        ? `M${x(k) - 5},${height - 26} C${x(k) - 14},${top} ${x(k) + 14},${top} ${x(k) + 5},${height - 26}`
        : `M${x(query)},${height - 26} Q${(x(query) + x(k)) / 2},${2 * top - (height - 26)} ${x(k)},${height - 26}`;
      return svg("path", { d: path, class: "arc", "stroke-width": 0.75 + 3.25 * weight, opacity: Math.min(1, 0.04 + weight) });
    });
    const labels = keys.map(({ label }, k) =>
      svg("text", { x: x(k), y: height - 8, "text-anchor": "middle", class: k === query ? "query" : "" }, label));
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": description, class: "arcs" }, lines, labels);
  }

  /**
   * Equal neighbours of a row as one run: its start, its length and the number.
   * @param {number[]} row @param {boolean} joined false for runs of one
   * @returns {[number, number, number][]}
   */
  function runs(row, joined) {
    const found = [];
    row.forEach((value, k) => {
      const last = found[found.length - 1];
      if (joined && last && last[2] === value) last[1]++;
      else found.push([k, 1, value]);
    });
    return found;
  }

  /**
   * A matrix of attention weights; the darker a cell, the larger its weight.
   * @param {number[][]} weights @param {string[]} labels of the keys @param {string[]} queries
   * @param {number} marked the row that is selected
   */
  function matrix(weights, labels, queries, marked, description) {
    const size = Math.max(7, Math.min(26, 420 / Math.max(labels.length, 1))), left = 40, top = 24;
    const width = left + size * labels.length + 4, height = top + size * weights.length + 4;
    const every = Math.ceil(14 / size);
    const cells = weights.map((row, i) => runs(row, labels.length > 24).map(([j, count, weight]) => weight === 0 ? null
      : svg("rect", { x: left + j * size, y: top + i * size, width: size * count - 1, height: size - 1, class: "weight", opacity: Math.min(1, 0.03 + weight) },
        svg("title", {}, `${queries[i]} → ${labels.slice(j, j + count).join(" ")}: ${short(weight)}`))));
    const names = (list, at) => list.map((label, k) => (k % every ? null : at(label, k)));
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": description, class: "matrix" },
      svg("rect", { x: left, y: top, width: size * labels.length, height: size * weights.length, class: "frame" }),
      cells,
      marked >= 0 && marked < weights.length &&
        svg("rect", { x: left, y: top + marked * size - 0.5, width: size * labels.length, height: size, class: "marked" }),
      names(labels, (label, k) => svg("text", { x: left + (k + 0.5) * size, y: top - 7, "text-anchor": "middle" }, label)),
      names(queries, (label, k) => svg("text", { x: left - 6, y: top + (k + 0.5) * size + 4, "text-anchor": "end" }, label)));
  }

  /**
   * A bar of the error bound beside the error allowed, on a logarithmic scale down to 2⁻⁶⁰.
   * @param {number} error @param {number | null} allowed null where any error is allowed
   */
  function marginBar(error, allowed) {
    const share = error === 0 || allowed === null ? 0 : allowed > 0 ? error / allowed : Infinity;
    const width = 100 * Math.min(1.15, Math.max(0, 1 + Math.log2(share || 2 ** -60) / 60));
    const words = allowed === null ? `error at most ${short(error)}; any is allowed`
      : `error at most ${short(error)}, allowed ${short(allowed)}`;
    return h("span", { class: "margin" },
      svg("svg", { viewBox: "0 0 120 10", width: 120, height: 10, "aria-hidden": "true" },
        svg("rect", { x: 0, y: 2, width: 100, height: 6, class: "room" }),
        svg("rect", { x: 0, y: 2, width, height: 6, class: share < 1 ? "used" : "exceeded" }),
        svg("line", { x1: 100, x2: 100, y1: 0, y2: 10, class: "allowed" })),
      ` ${words}`);
  }

  /** The start and the end of a long name: long names often differ at their ends. @param {string} name */
  function cut(name) {
    return name.length > 34 ? `${name.slice(0, 17)}…${name.slice(-16)}` : name;
  }

  /**
   * A table with a caption; a column whose heading begins with a capital has words, others numbers.
   * @param {string} caption @param {string[]} headings @param {any[][]} rows
   */
  function table(caption, headings, rows) {
    const kind = headings.map((text) => ({ class: /^[A-Z]/.test(text) ? "words" : null }));
    return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": caption },
      h("table", {}, h("caption", {}, caption),
        h("thead", {}, h("tr", {}, headings.map((text, k) => h("th", { scope: "col", ...kind[k] }, text)))),
        h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, k) => h(k ? "td" : "th", k ? kind[k] : { scope: "row", ...kind[k] }, cell)))))));
  }

  return { arcs, cut, h, marginBar, matrix, short, signed, table, whole };
})();
