/* The map of labels over clients: who has what. */
(function (page) {
  "use strict";

  const MOST_CELLS = 6000;
  const MOST_DRAWN = 150;
  const NAMED = 40; // clients; above, their names would overlap
  const SPOKEN = 6; // labels of a client that a screen reader says
  const ORDERS = { skew: "by skew, the most unusual first", size: "by size, the largest first", listed: "as listed" };

  page.labelMap = function (cell) {
    const { labels, names, skew } = cell.clients;
    const state = { order: skew.some((value) => !page.missing(value)) ? "skew" : "size", thinned: "" };
    const select = page.el("select", {}, Object.entries(ORDERS).map(([key, text]) => page.el("option", { value: key }, text)));
    select.value = state.order;
    const highestShown = page.el("span");
    const figure = page.figure({
      title: "Labels of each client",
      note: () => `Each row is a client; the stronger the colour, the larger the label's share of its data. ${state.thinned}`,
      controls: [
        page.el("label", {}, "Order ", select),
        page.el("span", { class: "heat-key" }, "0 %", page.el("i"), highestShown),
      ],
      draw,
      tall: () => heightOf(ordered(cell, state.order)).height,
      table: () => ({
        header: ["client", ...labels.names.map(String)],
        rows: names.map((_, i) => [page.clientLink(cell, i), ...labels.counts[i].map(String)]),
      }),
    });
    select.addEventListener("change", () => {
      state.order = select.value;
      figure.chart.redraw();
    });

    /** The clients drawn, a row's height, the room for the labels' names, and the height of all. */
    function heightOf(clients) {
      const shown = page.thinned(clients, Math.max(20, Math.min(MOST_DRAWN, Math.floor(MOST_CELLS / labels.names.length))));
      const row = shown.length <= NAMED ? 18 : Math.max(4, Math.min(12, Math.floor(560 / shown.length)));
      const top = labels.names.some((name) => String(name).length > 3) ? 62 : 24;
      return { shown, row, top, height: row * shown.length + top + 8 };
    }

    function draw(width) {
      const { shown, row, top, height } = heightOf(ordered(cell, state.order));
      state.thinned = shown.length < names.length ? `${shown.length} of ${names.length.toLocaleString("en")} clients are drawn, at even steps of the order.` : "";
      const named = shown.length <= NAMED;
      const data = shown.flatMap((client) => cell.shares(client).map((share, label) => ({ client, label, share }))).filter((one) => one.share > 0);
      const highest = d3.max(data, (one) => one.share) || 1;
      highestShown.textContent = page.percent(highest);
      const across = width - (named ? 104 : 20) - 10, room = across / labels.names.length;
      const every = Math.ceil(22 / room);
      const svg = page.plot(`Shares of ${labels.names.length} labels in the data of ${shown.length} clients; the arrow keys go through them`, {
        width, height, marginLeft: named ? 104 : 20, marginRight: 10, marginTop: top, marginBottom: 8,
        x: { type: "band", domain: d3.range(labels.names.length), padding: room > 8 ? 0.06 : 0, axis: null },
        y: { type: "band", domain: shown, padding: row > 8 ? 0.08 : 0, axis: null },
        marks: [
          Plot.frame({ stroke: "currentColor", strokeOpacity: 0.15 }),
          Plot.cell(data, { x: "label", y: "client", fill: "var(--heat)", fillOpacity: (one) => 0.06 + (0.94 * one.share) / highest, className: "heat" }),
          Plot.axisX(d3.range(labels.names.length).filter((i) => i % every === 0), {
            anchor: "top", tickSize: 0, tickFormat: (i) => page.short(String(labels.names[i]), 10), tickRotate: top > 30 ? -45 : 0, textAnchor: top > 30 ? "start" : "middle", label: null,
          }),
          named ? Plot.axisY({ tickSize: 0, tickFormat: (i) => page.middle(names[i], 14), label: null }) : null,
        ],
      });
      svg.setAttribute("role", "group");
      rows(svg, shown);
      return svg;
    }

    /** A row for each client over the cells, that the pointer, the arrow keys and a screen reader find. */
    function rows(svg, shown) {
      const { range } = svg.scale("y"), tall = (range[1] - range[0]) / shown.length, [left, right] = svg.scale("x").range;
      const wired = shown.map((client, i) => ({ client, element: page.el("rect", { x: left, width: right - left, y: range[0] + i * tall, height: tall, fill: "transparent" }) }));
      svg.querySelectorAll(":scope > g").forEach((part) => part.setAttribute("aria-hidden", "true"));
      svg.append(page.el("g", { class: "rows" }, wired.map((one) => one.element)));
      page.wire(svg, cell, wired, {
        near: (x, y) => wired[Math.floor((y - range[0]) / tall)] || null,
        label: ({ client }) => [page.clientLabel(cell, client), ...most(client)].join(", "),
      });
      const data = shown.flatMap((i) => cell.shares(i).filter((share) => share > 0).map(() => i));
      const { mark } = svg;
      svg.mark = () => {
        mark();
        svg.querySelectorAll(".heat rect").forEach((rect) => (rect.style.opacity = cell.found && !cell.found.has(data[rect.__data__]) ? 0.2 : ""));
      };
    }

    /** A client's most frequent labels, in words. */
    function most(client) {
      const shares = cell.shares(client);
      const places = d3.range(shares.length).filter((i) => shares[i] > 0);
      return d3.sort(places, (i) => -shares[i]).slice(0, SPOKEN).map((i) => `${page.named(String(labels.names[i]), 30)} ${page.percent(shares[i])}`);
    }

    cell.on("search", () => figure.chart.mark?.());
    return figure;
  };

  function ordered(cell, order) {
    const { names, skew } = cell.clients;
    const clients = d3.range(names.length);
    if (order === "skew") return d3.sort(clients, (i) => -(skew[i] ?? -1));
    return order === "size" ? d3.sort(clients, (i) => -(cell.size(i) ?? -1)) : clients;
  }

  /** At most so many of a list, at even steps. */
  page.thinned = function (list, most) {
    return list.length <= most ? list : d3.range(most).map((i) => list[Math.round((i * (list.length - 1)) / (most - 1))]);
  };
})((window.idiolect = window.idiolect || {}));
