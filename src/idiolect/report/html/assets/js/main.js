/* Puts the page together. */
(function (page) {
  "use strict";

  const PARTS = [["table", "Methods"], ["clients", "Clients"], ["why", "Why"], ["curves", "Curves"], ["data", "Data"], ["graph", "Graph"], ["sweep", "Sweep"]];

  /** The parts of one federation. */
  function build(cell) {
    const { data, clients, place } = cell;
    const id = (name) => `${name}-${place}`;
    const local = clients && clients.scores[clients.local] ? clients.local : null;
    const shared = clients && clients.scores[clients.shared] ? clients.shared : null;
    const reference = local || shared, phrase = local ? "training alone" : "the shared model";
    const root = page.el("div", { class: "cell", id: `cell-${place}` });
    root.append(
      page.cells.length > 1 ? page.el("h2", { class: "cell-head" }, page.text(data.title)) : "",
      page.cells.length > 1 && data.answer?.length ? page.el("ul", { class: "answer" }, data.answer.filter(Boolean).map((text) => page.el("li", {}, page.text(text)))) : "",
      data.notes?.length ? page.notice("Of these results", data.notes) : "",
      page.el("div", { class: "rule" }, page.legend(cell), clients?.names.length > 1 ? page.search(cell) : null),
      page.part(id("table"), "How the methods compare", "", page.mainTable(cell), (data.tables || []).map(extra)),
    );
    if (clients && cell.scored().length) {
      const told = page.outcomes(cell).length > 0;
      root.append(
        page.part(id("clients"), "Which clients win, which lose",
          local ? "Clients that score better or worse than alone, beyond noise; in pale, those that cannot be told apart, by the side they lean to. Choose a model to see its clients." : "Each client's score, one dot a client.",
          told ? [page.dotsKey(), page.winners(cell)] : null,
          page.el("div", { class: "pick gap" }, page.modelChoice(cell)),
          page.el("div", { class: "grid" }, local ? page.against(cell, local, "training alone") : null, shared ? page.against(cell, shared, "the shared model") : null)),
      );
      if (reference && clients.names.length > 1) root.append(page.part(id("why"), "Why: size, labels, distance", "What the clients that gain have in common.", page.el("div", { class: "grid" }, why(cell, reference, phrase, shared))));
    }
    if (data.curves?.quantities.length) root.append(page.part(id("curves"), "Learning curves", "", first(page.curves(cell))));
    if (clients?.labels) root.append(page.part(id("data"), "The data", "", page.labelMap(cell)));
    const graphs = clients ? page.graphsOf(cell) : [];
    if (graphs.length) root.append(page.part(id("graph"), graphs[0].learned ? "Relations between clients" : "The graph of clients", "", page.el("div", { class: "grid" }, page.graphs(cell))));
    if (data.sweep?.runs.length) root.append(page.part(id("sweep"), "The sweep", "", page.sweep(cell)));
    if (data.settings?.length) root.append(page.part(id("settings"), "Settings", "", page.pairs(data.settings)));
    return root;
  }

  /** The first figure over the whole width, the others side by side. */
  function first([one, ...others]) {
    return [one, others.length ? page.el("div", { class: others.length > 1 ? "grid gap" : "gap" }, others) : null];
  }

  function why(cell, reference, phrase, shared) {
    const { clients } = cell;
    const has = (values) => values?.some((value) => !page.missing(value));
    const gain = (axis, over = reference, words = phrase) => page.gainAgainst(cell, over, words, axis);
    return [
      has(clients.train) || has(clients.test) ? gain({ title: "Gain against size", of: cell.sizeName(), log: true, values: () => clients.names.map((_, i) => cell.size(i)) }) : null,
      has(clients.skew) ? gain({ title: "Gain against label skew", of: "distance of its labels to everyone's", values: () => clients.skew }) : null,
      clients.distances && shared ? gain({
        title: "Gain against distance to the shared model", of: "distance of its model, L2 over parameters", plain: true,
        values: (model) => clients.distances[model], none: "This model keeps no model of its own for each client.",
        note: "Does going one's own way pay?",
      }, shared, "the shared model") : null,
    ];
  }

  function extra(table) {
    return page.el("details", { class: "extra" }, page.el("summary", {}, page.text(table.title)), page.plainTable(table.header, table.rows, 1, table.title));
  }

  function bar(roots) {
    const list = page.el("ul");
    const theme = page.el("button", { type: "button", class: "theme", on: { click: () => turn(theme) } }, "Dark");
    const fill = (place) => {
      const parts = PARTS.filter(([name]) => roots[place]?.querySelector(`#${name}-${place}`)).map(([name, text]) => [`${name}-${place}`, text]);
      const all = [["answer", "Answer"], ...parts, ["questions", "Questions"], ["leaks", "Leaks"], ["made", "How made"]];
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
    main.append(...[page.top(), picker(roots, fill), ...roots, page.questions(), page.leaks(), page.made()].filter(Boolean));
    main.append(page.el("footer", {}, "Made by idiolect. This file asks nothing of the network; its charts are drawn by Observable Plot and D3 (ISC licence)."));
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
