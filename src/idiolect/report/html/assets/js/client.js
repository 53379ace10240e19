/* A client's page: its data, its models' scores, where they are wrong. Its address is #client-CELL-NUMBER. */
(function (page) {
  "use strict";

  const ADDRESS = /^#client-(\d+)-(\d+)$/;
  let came = false; // from a click in this page: then closing goes back
  let opener = null;

  page.goToClient = function (cell, client) {
    page.hideTip();
    came = true;
    opener = document.activeElement;
    location.hash = `client-${cell.place}-${client}`;
  };

  /** A client's name in a table, as a link to its page. */
  page.clientLink = function (cell, client) {
    const go = (event) => {
      event.preventDefault();
      page.goToClient(cell, client);
    };
    return page.el("a", { href: `#client-${cell.place}-${client}`, on: { click: go } }, page.name(cell.clients.names[client]));
  };

  /** Open or close the page that the address asks for. */
  page.followAddress = function () {
    const dialog = document.getElementById("client");
    const match = ADDRESS.exec(location.hash);
    const cell = match && page.cells[Number(match[1])], client = match && Number(match[2]);
    if (!cell?.clients || !(client < cell.clients.names.length)) return shut(dialog);
    page.forget(dialog);
    dialog.replaceChildren(head(cell, client), sheet(cell, client));
    if (!dialog.open) dialog.showModal();
    document.body.classList.add("has-client");
    dialog.scrollTop = 0;
    dialog.querySelector("h2").focus();
  };

  page.setUpClient = function () {
    const dialog = document.getElementById("client");
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      leave();
    });
    dialog.addEventListener("click", (event) => event.target === dialog && leave());
    dialog.addEventListener("keydown", (event) => {
      if (event.target.matches("select, input")) return;
      const step = { ArrowRight: "[rel=next]", ArrowLeft: "[rel=prev]" }[event.key];
      if (step && !event.altKey && !event.ctrlKey && !event.metaKey) dialog.querySelector(step)?.click();
    });
    addEventListener("hashchange", page.followAddress);
    page.followAddress();
  };

  function leave() {
    if (came) history.back();
    else {
      history.replaceState(null, "", location.pathname + location.search);
      page.followAddress();
    }
  }

  function shut(dialog) {
    if (dialog.open) dialog.close();
    document.body.classList.remove("has-client");
    page.hideTip();
    page.forget(dialog);
    dialog.replaceChildren();
    came = false;
    if (opener?.isConnected) opener.focus({ preventScroll: true });
    opener = null;
  }

  function head(cell, client) {
    const many = cell.clients.names.length;
    const step = (by, rel, text, sign) => {
      const to = (client + by + many) % many;
      return page.el("button", { type: "button", rel, "aria-label": text, on: { click: () => { history.replaceState(null, "", `#client-${cell.place}-${to}`); page.followAddress(); } } }, sign);
    };
    return page.el("div", { class: "sheet-head" },
      page.el("h2", { id: "client-title", tabindex: "-1" }, page.name(cell.clients.names[client])),
      many > 1 ? step(-1, "prev", "The client before", "←") : null,
      many > 1 ? step(1, "next", "The next client", "→") : null,
      page.el("button", { type: "button", class: "close", "aria-label": "Close", on: { click: leave } }, "✕"));
  }

  function sheet(cell, client) {
    const { labels, label_values: values, confusion, residuals, confusion_note: words } = cell.clients;
    return page.el("div", { class: "sheet" },
      tiles(cell, client),
      page.el("p", { class: "verdict" }, verdict(cell, client)),
      page.el("section", {}, page.clientScores(cell, client)),
      labels ? page.el("section", {}, page.clientLabels(cell, client)) : null,
      values?.[client] ? page.el("section", {}, page.el("h3", {}, "Its label"), quantiles(values[client])) : null,
      confusion ? errors(cell, client, confusion, "Where models are wrong", page.confusion, words) : null,
      residuals ? errors(cell, client, residuals, "How far off models are", page.residuals, words) : null,
      page.el("p", { class: "small soft keys" }, "Escape closes this page, the arrow keys go to other clients."));
  }

  function tiles(cell, client) {
    const { train, test, skew, names } = cell.clients;
    const place = (values) => 1 + values.filter((value) => value > values[client]).length;
    const tile = (values, name) =>
      page.missing(values[client]) ? null : page.el("li", {}, page.el("b", {}, page.number(values[client])), `${name}, ${ordinal(place(values))} of ${names.length.toLocaleString("en")}`);
    return page.el("ul", { class: "tiles" }, tile(train, "training samples"), tile(test, "test samples"), tile(skew, "label skew (0 to 1)"));
  }

  /** One sentence: the best model here, and how the client does compared with local training. */
  function verdict(cell, client) {
    const { scores, local } = cell.clients;
    const known = cell.scored().filter((key) => !page.missing(scores[key][client]));
    if (!known.length) return "No model was scored for this client.";
    const best = d3.least(known, (key) => (cell.metric.higher ? -1 : 1) * scores[key][client]);
    const first = [page.name(cell.title(best)), ` scores best here: ${page.scoreOf(cell, best, client)}`];
    if (best === local) return [...first, ". No other model is better than local training."];
    if (!local || page.missing(scores[local]?.[client])) return [...first, "."];
    const beyond = cell.beyond(best, client);
    const noise = beyond === 1 ? ", beyond noise" : beyond === 0 ? ", within noise" : "";
    return [...first, `, ${page.difference(cell.metric, cell.gain(best, local, client)).replace("+", "")} better than local training${noise}.`];
  }

  function errors(cell, client, parts, title, draw, words) {
    const keys = cell.scored().filter((key) => parts[key]?.[client]);
    if (!keys.length) return null;
    const start = [keys.includes(cell.chosen()) ? cell.chosen() : keys[0]];
    if (cell.clients.local && keys.includes(cell.clients.local) && start[0] !== cell.clients.local) start.push(cell.clients.local);
    else if (keys.length > 1) start.push(keys.find((key) => key !== start[0]));
    const grid = page.el("div", { class: "confusion" }, start.map((key) => draw(cell, client, key)));
    const select = page.el("select", { "aria-label": "Model on the left" }, keys.map((key) => page.el("option", { value: key, dir: "auto" }, page.middle(cell.title(key), 60))));
    select.value = start[0];
    select.addEventListener("change", () => {
      const old = grid.firstElementChild;
      page.forget(old);
      old.replaceWith(draw(cell, client, select.value));
    });
    return page.el("section", {}, page.el("h3", {}, title), words ? page.el("p", { class: "small soft" }, page.text(words)) : null,
      keys.length > 2 ? page.el("p", {}, select) : null, grid);
  }

  function quantiles(values) {
    const names = values.length === 5 ? ["smallest", "first quarter", "middle", "third quarter", "largest"] : values.map((_, i) => page.percent(i / Math.max(1, values.length - 1)));
    return page.plainTable(names, [values.map(page.number)], 0);
  }

  function ordinal(place) {
    return place === 1 ? "the largest" : `${place}${place % 100 > 10 && place % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][place % 10] || "th"} largest`;
  }
})((window.idiolect = window.idiolect || {}));
