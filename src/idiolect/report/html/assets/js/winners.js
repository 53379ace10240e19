/* Who gains and who loses: for each model, the clients that are better or worse off than with local training. */
(function (page) {
  "use strict";

  /** Counts {key, won, level, lost, of} of each model that is compared with local training, best first. */
  page.outcomes = function (cell) {
    const clients = cell.clients;
    const keys = cell.scored().filter((key) => key !== clients.local && (clients.beyond || {})[key]?.some((value) => !page.missing(value)));
    const counted = keys.map((key) => {
      const known = clients.beyond[key].filter((value) => !page.missing(value));
      const count = (sign) => known.filter((value) => value === sign).length;
      return { key, gain: d3.mean(d3.range(clients.names.length), (i) => cell.gain(key, clients.local, i)) ?? 0, won: count(1), level: count(0), lost: count(-1), of: known.length };
    });
    return counted.sort((a, b) => (b.won - b.lost) / b.of - (a.won - a.lost) / a.of || b.gain - a.gain);
  };

  page.winners = function (cell) {
    const body = page.el("tbody");
    const table = page.el("div", { class: "scroll winners", tabindex: "0", role: "region", "aria-label": "Clients that gain and lose with each model" },
      page.el("table", {},
        page.el("thead", {}, page.el("tr", {},
          page.el("th", { scope: "col" }, "Model"), page.el("th", { scope: "col" }, page.el("span", { class: "unseen" }, "Shares")),
          ["gain", "no difference", "lose", "clients"].map((text) => page.el("th", { scope: "col", class: "number" }, text)))),
        body));
    function fill() {
      const chosen = cell.chosen();
      const rows = page.outcomes(cell).map((one) => {
        const parts = [["won", one.won], ["level", one.level], ["lost", one.lost]].filter(([, count]) => count);
        const pressed = String(one.key === chosen);
        const button = page.el("button", { type: "button", "aria-pressed": pressed, on: { click: () => pick(one.key) } },
          page.swatch(cell, one.key), page.name(page.middle(cell.title(one.key), 30)));
        return page.el("tr", { class: one.key === chosen ? "chosen" : null, "data-model": one.key },
          page.el("th", { scope: "row" }, button),
          page.el("td", { class: "bars" }, page.el("div", { class: "stack", "aria-hidden": "true" }, parts.map(([kind, count]) => page.el("span", { class: kind, style: { flex: `${count} 0 0` } })))),
          [one.won, one.level, one.lost, one.of].map((count) => page.el("td", { class: "number" }, page.number(count))));
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
    return [page.sideways(table), table];
  };
})((window.idiolect = window.idiolect || {}));
