/* Tables: the one that compares methods, sortable, and plain ones. */
(function (page) {
  "use strict";

  /** A table that scrolls by itself. words: number of first columns that are text, as are others without numbers; label: for screen readers. */
  page.plainTable = function (header, rows, words = 1, label = "") {
    const number = (value) => typeof value !== "string" || /^([-+−–—<>\d]|$)/.test(value);
    const align = (place) => (place >= words && rows.every((row) => number(row[place])) ? "number" : null);
    const table = page.el("div", { class: `scroll${rows.length > 12 ? " high" : ""}`, tabindex: "0", role: "region", "aria-label": label || page.short(header.join(", "), 120) },
      page.el("table", {},
        page.el("thead", {}, page.el("tr", {}, header.map((text, i) => page.el("th", { scope: "col", class: align(i) }, page.text(String(text)))))),
        page.el("tbody", {}, rows.map((row) => page.el("tr", {}, row.map((text, i) => page.el(i ? "td" : "th", { class: align(i), scope: i ? null : "row" }, plain(text)))))),
      ),
    );
    return page.el("div", {}, page.sideways(table), table);
  };

  const onWide = new ResizeObserver((entries) => entries.forEach(({ target }) => (target.hint.hidden = target.scrollWidth <= target.clientWidth + 1)));

  /** A line that says that a table has more columns than are seen; hidden where all are. */
  page.sideways = function (table) {
    table.hint = page.el("p", { class: "hint" }, "Scroll the table sideways for more columns →");
    table.hint.hidden = true;
    onWide.observe(table);
    return table.hint;
  };

  /** The table of methods: a button in each header sorts, the best is bold. */
  page.mainTable = function (cell) {
    const { columns, rows, caption } = cell.data.table;
    const body = page.el("tbody");
    const lines = rows.map((row, place) => ({ row, place, element: line(cell, columns, row) }));
    const heads = columns.map((column, i) => head(column, () => sort(i)));
    body.append(...lines.map((one) => one.element));

    function sort(i) {
      const now = heads[i].getAttribute("aria-sort");
      const first = columns[i].numeric ? "descending" : "ascending";
      const next = now ? (now === "ascending" ? "descending" : "ascending") : first;
      heads.forEach((other, j) => (i === j ? other.setAttribute("aria-sort", next) : other.removeAttribute("aria-sort")));
      const sign = next === "ascending" ? 1 : -1;
      const key = (one) => one.row.cells[i].sort;
      lines.sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (page.missing(x) || page.missing(y)) return page.missing(x) - page.missing(y) || a.place - b.place;
        return sign * (typeof x === "string" || typeof y === "string" ? String(x).localeCompare(String(y)) : x - y) || a.place - b.place;
      });
      body.append(...lines.map((one) => one.element));
      page.say(`Sorted by ${columns[i].title}, ${next}`);
    }

    const table = page.el("div", { class: `scroll main-table${columns.length > 7 ? " many" : ""}`, tabindex: "0", role: "region", "aria-label": "Table of methods" },
      page.el("table", {}, caption ? page.el("caption", {}, page.text(caption)) : null, page.el("thead", {}, page.el("tr", {}, heads)), body),
    );
    return [page.sideways(table), table];
  };

  function head(column, onSort) {
    const button = page.el("button", { type: "button", class: `sort${column.help ? " helped" : ""}`, on: { click: onSort } }, page.text(column.title));
    if (column.help) page.help(button, column.help);
    return page.el("th", { scope: "col", class: column.numeric ? "number" : null }, button);
  }

  function line(cell, columns, row) {
    const cells = row.cells.map((value, i) => {
      const bold = value.bold ? " bold" : "";
      if (i) return page.el("td", { class: `${columns[i].numeric ? "number" : ""}${bold}` }, columns[i].numeric ? page.text(value.text) : page.name(value.text));
      return page.el("th", { scope: "row", class: bold.trim() || null }, page.swatch(cell, row.model), page.name(value.text));
    });
    return page.el("tr", { class: row.best ? "best" : null, "data-model": row.model }, cells);
  }

  function plain(value) {
    return typeof value === "string" ? page.text(value) : value instanceof Node ? value : page.text(page.number(value));
  }

  /** A piece of a model's line: colour, dashes, mark. */
  page.swatch = function (cell, key) {
    return page.stroke(cell.colour(key), cell.dash(key), cell.symbol(key));
  };

  page.stroke = function (colour, dash, symbol) {
    const mark = symbol ? page.el("path", { d: d3.symbol(Plot_symbol(symbol), 34)(), transform: "translate(11 6)", style: { fill: colour } }) : null;
    return page.el("svg", { class: "swatch", width: 22, height: 12, viewBox: "0 0 22 12", "aria-hidden": "true" },
      page.el("line", { x1: 1, x2: 21, y1: 6, y2: 6, "stroke-width": 3, "stroke-dasharray": dash, style: { stroke: colour } }), mark);
  };

  function Plot_symbol(name) {
    return { circle: d3.symbolCircle, square: d3.symbolSquare, triangle: d3.symbolTriangle, diamond: d3.symbolDiamond, star: d3.symbolStar, wye: d3.symbolWye }[name];
  }
})((window.idiolect = window.idiolect || {}));
