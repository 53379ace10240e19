/* Who wins and who loses: for each model, the clients that are better or worse off than alone, beyond noise. */
(function (page) {
  "use strict";

  const NUMBERS = ["number", "number level-number", "number"];

  /** Counts {key, won, level, lost, of} and, of level, {up, down}, of each model that is told from Local, best first. */
  page.outcomes = function (cell) {
    const clients = cell.clients;
    const keys = cell.scored().filter((key) => key !== clients.local && (clients.beyond || {})[key]?.some((value) => !page.missing(value)));
    const counted = keys.map((key) => {
      const known = clients.beyond[key].filter((value) => !page.missing(value));
      const count = (sign) => known.filter((value) => value === sign).length;
      const leaning = (sign) => d3.range(clients.names.length).filter((i) => clients.beyond[key][i] === 0 && Math.sign(cell.gain(key, clients.local, i) ?? 0) === sign).length;
      return { key, up: leaning(1), down: leaning(-1), gain: d3.mean(d3.range(clients.names.length), (i) => cell.gain(key, clients.local, i)) ?? 0, won: count(1), level: count(0), lost: count(-1), of: known.length };
    });
    return counted.sort((a, b) => (b.won - b.lost) / b.of - (a.won - a.lost) / a.of || b.gain - a.gain);
  };

  page.winners = function (cell) {
    const body = page.el("tbody");
    const table = page.el("div", { class: "scroll winners", tabindex: "0", role: "region", "aria-label": "Clients that win and lose with each model" },
      page.el("table", {},
        page.el("thead", {}, page.el("tr", {},
          page.el("th", { scope: "col" }, "Model"), page.el("th", { scope: "col" }, page.el("span", { class: "unseen" }, "Shares")),
          ["better", "not told apart", "worse"].map((text, i) => page.el("th", { scope: "col", class: NUMBERS[i] }, text)))),
        body));
    function fill() {
      const chosen = cell.chosen();
      const rows = page.outcomes(cell).map((one) => {
        const same = one.level - one.up - one.down;
        const part = (kind, count) => (count ? page.el("span", { class: kind, style: { flex: `${count} 0 0` } }) : null);
        const parts = [["won", one.won], ["up", one.up], ["level", same], ["down", one.down], ["lost", one.lost]];
        const level = page.el("span", {}, String(one.level), one.up || one.down ? page.el("span", { class: "soft small" }, ` (${one.up} ↑ ${one.down} ↓)`) : null);
        const pressed = String(one.key === chosen);
        const button = page.el("button", { type: "button", "aria-pressed": pressed, on: { click: () => pick(one.key) } },
          page.swatch(cell, one.key), page.name(cell.title(one.key)));
        return page.el("tr", { class: one.key === chosen ? "chosen" : null, "data-model": one.key },
          page.el("th", { scope: "row" }, button),
          page.el("td", { class: "bars" }, page.el("div", { class: "stack", "aria-hidden": "true" }, parts.map(([kind, count]) => part(kind, count)))),
          [String(one.won), level, String(one.lost)].map((count, i) => page.el("td", { class: NUMBERS[i] }, count)));
      });
      body.replaceChildren(...rows);
      table.hidden = !rows.length;
    }

    function pick(model) {
      cell.choose(model);
      body.querySelector('[aria-pressed="true"]')?.focus();
    }

    fill();
    cell.on("methods", fill);
    cell.on("chosen", fill);
    return table;
  };
})((window.idiolect = window.idiolect || {}));
