/* Puts the page together. */
(function (page) {
  "use strict";

  const PARTS = [["table", "Methods"], ["clients", "Clients"], ["why", "Size, labels"], ["curves", "Curves"], ["data", "Data"], ["graph", "Graph"], ["sweep", "Sweep"]];

  /** The parts of one federation. */
  function build(cell) {
    const { data, clients, place } = cell;
    const id = (name) => `${name}-${place}`;
    const local = clients && clients.scores[clients.local] ? clients.local : null;
    const shared = clients && clients.scores[clients.shared] ? clients.shared : null;
    const reference = local || shared, drawn = [local, shared].filter((key) => key && page.differ(clients.scores[key]));
    const phrase = local ? "local training" : "the shared model";
    const root = page.el("div", { class: "cell", id: `cell-${place}` });
    root.append(
      page.cells.length > 1 ? page.el("h2", { class: "cell-head" }, page.text(data.title)) : "",
      page.cells.length > 1 ? page.conclusion(data) : "",
      data.notes?.length ? page.notice("About these data", data.notes) : "",
      page.el("div", { class: "rule" }, page.legend(cell), clients?.names.length > 1 ? page.search(cell) : null),
      page.part(id("table"), "How the methods compare", "", page.mainTable(cell), [...(data.tables || []), ...(data.shares ? [data.shares] : [])].map(extra)),
    );
    if (clients && cell.scored().length) {
      const tested = page.outcomes(cell).length > 0;
      root.append(
        page.part(id("clients"), local ? "Which clients gain, which lose" : "Scores of each client",
          tested ? "Each client is tested: gain, lose and no difference add up to the clients. Choose a model to see its clients." : "",
          tested ? [page.dotsKey(cell), page.winners(cell)] : null,
          tested || drawn.length ? page.el("div", { class: "pick gap" }, page.modelChoice(cell)) : scores(cell),
          page.el("div", { class: "grid" }, drawn.map((key) => page.against(cell, key, key === local ? "local training" : "the shared model"))),
          local && !drawn.includes(local) ? page.el("p", { class: "small soft" }, "No chart compares with local training: its value is the same for all clients.") : null),
      );
      if (reference && clients.names.length > 1) root.append(...why(cell, id("why"), reference, phrase, shared));
    }
    if (data.curves?.quantities.length) root.append(page.part(id("curves"), "Learning curves", "", first(page.curves(cell))));
    if (clients?.labels) root.append(page.part(id("data"), "The data", "", page.labelMap(cell)));
    const graphs = clients ? page.graphsOf(cell) : [];
    if (graphs.length) root.append(page.part(id("graph"), graphs[0].learned ? "Relations between clients" : "The graph of clients", "", page.el("div", { class: "grid" }, page.graphs(cell))));
    if (data.sweep?.runs.length) root.append(page.part(id("sweep"), "The sweep", "", page.sweep(cell)));
    if (data.settings?.length) root.append(page.part(id("settings"), "Settings", "", page.pairs(data.settings)));
    return root;
  }

  /** Every client's scores as a table, where no chart has them. */
  function scores(cell) {
    const models = cell.data.models.filter((model) => cell.clients.scores[model.key]);
    const rows = cell.clients.names.slice(0, page.MOST_ROWS).map((_, i) => [page.clientLink(cell, i), ...models.map((model) => page.scoreOf(cell, model.key, i))]);
    return page.plainTable(["client", ...models.map((model) => model.title)], rows, 1, "Scores of each client");
  }

  /** The first figure over the whole width, the others side by side. */
  function first([one, ...others]) {
    return [one, others.length ? page.el("div", { class: others.length > 1 ? "grid gap" : "gap" }, others) : null];
  }

  /** Charts of the gain over what differs between clients; what is equal for all is left out, and a sentence says so. */
  function why(cell, id, reference, phrase, shared) {
    const { clients } = cell;
    const known = (values) => (values || []).filter((value) => !page.missing(value));
    const sizes = clients.names.map((_, i) => cell.size(i));
    const distances = known(Object.values(clients.distances || {}).flat());
    const axes = [
      { values: sizes, title: "Gain by size", of: cell.sizeName(), log: true },
      { values: clients.skew, title: "Gain by label skew", of: "distance of its labels to everyone's" },
      { values: shared ? distances : [], title: "Gain by distance to the shared model", of: "distance of its model, L2 over parameters", plain: true,
        by: (model) => clients.distances[model], none: "This model keeps no model of its own for each client.", note: "Whether distinctive models gain more.", over: [shared, "the shared model"] },
    ].filter(({ values }) => known(values).length);
    const equal = (axis) => !page.differ(axis.values);
    const charts = axes.filter((axis) => !equal(axis)).map((axis) => page.gainAgainst(cell, ...(axis.over || [reference, phrase]), { ...axis, values: axis.by || (() => axis.values) }));
    const left = axes.filter(equal).map((axis) => `${axis.title} is not drawn: all clients have the same value, ${page.number(known(axis.values)[0])} (${axis.of}).`);
    if (!axes.length) return [];
    return [page.part(id, "Size, labels, distance", "", charts.length ? page.el("div", { class: "grid" }, charts) : null, left.map((text) => page.el("p", { class: "small soft" }, text)))];
  }

  function extra(table) {
    return page.el("details", { class: "extra" }, page.el("summary", {}, page.text(table.title)), page.plainTable(table.header, table.rows, table.header[1] === "model" ? 2 : 1, table.title));
  }

  function bar(roots) {
    const list = page.el("ul");
    const theme = page.el("button", { type: "button", class: "theme", on: { click: () => turn(theme) } }, "Dark");
    const fill = (place) => {
      const parts = PARTS.filter(([name]) => roots[place]?.querySelector(`#${name}-${place}`)).map(([name, text]) => [`${name}-${place}`, text]);
      const all = [["answer", "Conclusion"], ...parts, ["leaks", "Leaks"], ["made", "How made"]];
      list.replaceChildren(...all.filter(([id]) => document.getElementById(id)).map(([id, text]) => page.el("li", {}, page.el("a", { href: `#${id}` }, text))));
    };
    document.getElementById("bar").append(page.el("div", { class: "bar-in" }, page.el("nav", { "aria-label": "Parts of the page" }, list), theme));
    label(theme);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => label(theme));
    return fill;
  }

  function dark() {
    const set = document.documentElement.dataset.theme;
    return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function turn(button) {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    label(button);
  }

  function label(button) {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", dark() ? "Light colours" : "Dark colours");
  }

  function picker(roots, fill) {
    if (roots.length < 2) return null;
    const select = page.el("select", {}, page.cells.map((cell) => page.el("option", { value: cell.place, dir: "auto" }, page.short(cell.data.title, 80))));
    select.addEventListener("change", () => show(roots, Number(select.value), fill));
    return page.el("div", { class: "pick" }, page.el("label", {}, "Results of ", select), page.el("span", { class: "soft small" }, `one of ${roots.length}; on paper, all of them`));
  }

  function show(roots, place, fill) {
    roots.forEach((root, i) => (root.hidden = i !== place));
    fill(place);
  }

  page.start = function () {
    page.open();
    const main = document.getElementById("main");
    const roots = page.cells.map(build);
    const fill = bar(roots);
    main.append(...[page.top(), picker(roots, fill), ...roots, page.leaks(), page.made()].filter(Boolean));
    main.append(page.el("footer", {}, "Made by idiolect. This file makes no network requests. Observable Plot and D3 (ISC licence) draw its charts."));
    const match = /-(\d+)(?:-\d+)?$/.exec(location.hash);
    show(roots, match && Number(match[1]) < roots.length ? Number(match[1]) : 0, fill);
    page.setUpClient();
    addEventListener("beforeprint", () => page.printed(true));
    addEventListener("afterprint", () => page.printed(false));
    matchMedia("print").addEventListener("change", (event) => event.matches && page.drawAll());
    document.documentElement.dataset.ready = "yes";
  };

  page.start();
})((window.idiolect = window.idiolect || {}));
