/* Elements, names and numbers. Data becomes text nodes and attributes only, never markup. */
(function (page) {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const FORMATS = [0, 1, 2, 3].map((digits) => new Intl.NumberFormat("en", { maximumFractionDigits: digits }));
  const SVG_TAGS = new Set(["svg", "line", "path", "g", "circle", "rect", "clipPath"]);

  /** An element with attributes ("on" holds listeners) and children; strings become text nodes, null is left out. */
  page.el = function (tag, attributes, ...children) {
    const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
      else if (key === "style") Object.entries(value).forEach(([name, text]) => element.style.setProperty(name, text));
      else element.setAttribute(key, value === true ? "" : String(value));
    }
    for (const child of children.flat(3)) if (child !== null && child !== undefined) element.append(child);
    return element;
  };

  /** The first letters of a text, with … where something was cut. */
  page.short = function (text, most) {
    const letters = Array.from(String(text).slice(0, 2 * most + 8));
    return letters.length > most || String(text).length > 2 * most + 8 ? letters.slice(0, most - 1).join("") + "…" : String(text);
  };

  /** A name cut in its middle: its last part tells models of one method apart. */
  page.middle = function (text, most) {
    const letters = Array.from(String(text).slice(0, 4000));
    if (letters.length <= most) return String(text);
    const last = letters.length - letters.lastIndexOf(","), end = last < most - 3 && last < letters.length ? last : most >> 1;
    return [...letters.slice(0, most - 1 - end), "…", ...letters.slice(letters.length - end)].join("");
  };

  /** A name inside a sentence that is plain text: isolated, so that right-to-left letters turn nothing else. */
  page.named = (text, most) => `\u2068${page.middle(String(text).replace(/[\u2066-\u2069\u202a-\u202e]/g, ""), most)}\u2069`;

  /** A name on one line: isolated from the text around it, cut by the style, whole as a title. */
  page.name = function (text, attributes) {
    return page.el("bdi", { class: "name", title: text.length > 12 ? text : null, ...attributes }, page.short(text, 300));
  };

  /** A text that may hold names in any script, isolated and wrapped. */
  page.text = (text) => page.el("bdi", { class: "text" }, page.short(text, 4000));

  page.missing = (value) => value === null || value === undefined || Number.isNaN(value);

  /** A number with about four digits, as people write it. */
  page.number = function (value) {
    if (page.missing(value)) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 0.001 || size >= 1e7)) return value.toExponential(2).replace("e+", "e").replace("-", "−");
    const digits = size >= 1000 || Number.isInteger(value) ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
    return minus(FORMATS[digits].format(value));
  };

  page.percent = (share, digits = 0) => (page.missing(share) ? "–" : minus((100 * share).toFixed(digits)) + " %");

  /** A score of a metric: per cent where the metric is shown so. */
  page.score = (metric, value) => (metric.percent ? page.percent(value, 1) : page.number(value));

  /** A difference of scores, with its sign; points where the metric is in per cent. */
  page.difference = function (metric, value) {
    if (page.missing(value)) return "–";
    const text = metric.percent ? minus((100 * value).toFixed(1)) + " points" : page.number(value);
    return value > 0 ? "+" + text : text;
  };

  /** Tick labels of an axis of scores. */
  page.tick = (percent) => (value) => (percent ? minus(String(+(100 * value).toFixed(2))) + " %" : page.number(value));

  page.count = (number, one, many) => `${FORMATS[0].format(number)} ${number === 1 ? one : many || one + "s"}`;

  /** Say something to screen readers. */
  page.say = function (text) {
    document.getElementById("said").textContent = text;
  };

  /** Run a function once, a little after the last of many calls. */
  page.later = function (run, wait) {
    let timer = 0;
    return (...values) => {
      clearTimeout(timer);
      timer = setTimeout(() => run(...values), wait);
    };
  };

  function minus(text) {
    return text.replace("-", "−");
  }
})((window.idiolect = window.idiolect || {}));
