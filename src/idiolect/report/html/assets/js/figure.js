/* Figures: a title, a chart that is drawn when it comes into view, and its numbers as a table. */
(function (page) {
  "use strict";

  const PAPER = 680; // pixels on a sheet of A4
  const HALF_PAPER = 320;
  const figures = new Set();
  const onView = new IntersectionObserver(
    (entries) => entries.forEach((entry) => (entry.isIntersecting ? entry.target.chart.view() : entry.target.chart.reserve())),
    { rootMargin: "250px" },
  );
  const onSize = new ResizeObserver(
    page.later((entries) => entries.forEach((entry) => entry.target.chart.resize()), 120),
  );

  /**
   * Make a figure. draw(width) gives the chart (an SVG element, whose `mark` shows a search) or a text if there is
   * nothing to draw; table() gives {header, rows, words}; note() a text below the title; controls are elements; tall(width) is the
   * chart's height, which is kept free until it is drawn.
   */
  page.figure = function ({ title, note, draw, table, controls, kind, tall = () => 260 }) {
    const plot = page.el("div", { class: "plot" });
    const notes = page.el("p", { class: "note" });
    const figure = page.el("figure", { class: `chart ${kind || ""}` },
      page.el("figcaption", {}, page.el("h3", {}, title), notes),
      controls?.length ? page.el("div", { class: "controls" }, controls) : null,
      plot,
      table ? asTable(table) : null,
    );
    const chart = { drawn: false, near: false, width: 0, plot };
    chart.reserve = () => (plot.style.minHeight = chart.drawn ? "" : `${Math.round(tall(plot.clientWidth || PAPER))}px`);
    chart.redraw = () => {
      chart.drawn = true;
      chart.width = page.printing ? paper(plot) : plot.clientWidth;
      const made = drawn(draw, chart.width || paper(plot));
      const empty = typeof made === "string" ? page.el("p", { class: "empty" }, made) : null;
      plot.replaceChildren(empty || made);
      chart.reserve();
      chart.mark = made?.mark || null;
      chart.mark?.();
      notes.textContent = (typeof note === "function" ? note() : note) || "";
      notes.hidden = !notes.textContent;
      const open = figure.querySelector(".as-table[open]");
      if (open) open.fill();
    };
    chart.view = () => {
      chart.near = true;
      if (!chart.drawn) chart.redraw();
    };
    chart.stale = () => {
      const place = plot.getBoundingClientRect();
      chart.drawn = false;
      if (plot.clientWidth && place.top < innerHeight + 250 && place.bottom > -250) chart.redraw();
      else {
        onView.unobserve(plot);
        onView.observe(plot);
      }
    };
    chart.resize = () => {
      if (chart.drawn && plot.clientWidth && Math.abs(plot.clientWidth - chart.width) > 4 && !page.printing) chart.redraw();
    };
    plot.chart = figure.chart = chart;
    figures.add(chart);
    onView.observe(plot);
    onSize.observe(plot);
    return figure;
  };

  /** Draw everything that is not drawn yet. */
  page.drawAll = function () {
    figures.forEach((chart) => chart.plot.isConnected && !chart.drawn && chart.redraw());
  };

  /** Before printing everything is drawn as wide as paper; afterwards, again as it is seen. */
  page.printed = function (printing) {
    page.printing = printing;
    document.querySelectorAll("details.extra, details.fact").forEach((details) => (details.open = printing));
    figures.forEach((chart) => chart.plot.isConnected && (printing ? chart.redraw() : chart.stale()));
  };

  function paper(plot) {
    return plot.closest(".grid > :not(:only-child), .confusion") ? HALF_PAPER : PAPER;
  }

  /** A chart that fails may not take the others with it. */
  function drawn(draw, width) {
    try {
      return draw(width);
    } catch (error) {
      console.error(error);
      return "This chart could not be drawn.";
    }
  }

  /** Forget the figures inside an element that is thrown away. */
  page.forget = function (element) {
    element.querySelectorAll(".plot").forEach((plot) => {
      figures.delete(plot.chart);
      onView.unobserve(plot);
      onSize.unobserve(plot);
    });
  };

  /** Draw with the page's letters and colours. */
  page.plot = function (label, options, interactive) {
    const svg = Plot.plot({
      style: { background: "none", fontFamily: "inherit", fontSize: "12px", color: "currentColor" },
      color: { type: "identity" },
      ariaLabel: page.short(label, 300),
      ...options,
    });
    svg.setAttribute("role", interactive ? "group" : "img");
    if (!interactive) svg.querySelectorAll("[aria-label]").forEach((part) => part.removeAttribute("aria-label"));
    return svg;
  };

  function asTable(table) {
    const details = page.el("details", { class: "as-table" }, page.el("summary", {}, "Show as a table"));
    details.fill = () => {
      const { header, rows, words } = table();
      const made = rows.length ? page.plainTable(header, rows.slice(0, page.MOST_ROWS), words) : page.el("p", { class: "small soft" }, "Nothing to show.");
      const cut = rows.length > page.MOST_ROWS ? page.el("p", { class: "small soft" }, `The first ${page.MOST_ROWS.toLocaleString("en")} of ${page.count(rows.length, "row")}; all are in the run's CSV files.`) : null;
      details.replaceChildren(details.firstElementChild, made, ...[cut].filter(Boolean));
    };
    details.addEventListener("toggle", () => details.open && details.fill());
    return details;
  }

  page.MOST_ROWS = 1000;
})((window.idiolect = window.idiolect || {}));
