/* The graph of clients, the relations that were learned, and the spectrum. */
(function (page) {
  "use strict";

  const MOST_EDGES = 3000;
  const MOST_ROWS = 60;
  const NAMED = 30;

  /** The graphs of a federation: that of a method, and relations that were learned. */
  page.graphsOf = (cell) => cell.data.graphs || (cell.data.graph ? [cell.data.graph] : []);

  page.graphs = (cell) =>
    page.graphsOf(cell).map((graph) => [!whole(cell, graph) ? null : graph.learned ? relations(cell, graph) : network(cell, graph), graph.eigenvalues?.length ? spectrum(graph) : null]);

  /** Whether every vertex is a client with a name: where few clients are evaluated, only they have one. */
  const whole = (cell, graph) => (graph.clients ?? cell.clients.names.length) === cell.clients.names.length;

  /** Clients as nodes, laid out once by forces; colours show who gains with the chosen model. */
  function network(cell, graph) {
    const many = cell.clients.names.length;
    const edges = graph.edges.filter(([a, b]) => a !== b);
    const heaviest = d3.greatest(edges, (edge) => Math.abs(edge[2]));
    const kept = edges.length > MOST_EDGES ? d3.sort(edges, (edge) => -Math.abs(edge[2])).slice(0, MOST_EDGES) : edges;
    const places = d3.range(many).map((client) => ({ client }));
    const cut = kept.length < edges.length ? ` The ${MOST_EDGES.toLocaleString("en")} heaviest of ${page.count(edges.length, "edge")} are drawn.` : "";
    let laid = false;

    function layout() {
      if (laid) return;
      laid = true;
      d3.forceSimulation(places)
        .force("link", d3.forceLink(kept.map(([source, target, weight]) => ({ source, target, weight }))).distance(34).strength((link) => 0.1 + (0.5 * Math.abs(link.weight)) / Math.abs(heaviest?.[2] || 1)))
        .force("charge", d3.forceManyBody().strength(-40).distanceMax(300))
        .force("x", d3.forceX().strength(0.09))
        .force("y", d3.forceY().strength(0.09))
        .force("apart", d3.forceCollide(many <= NAMED ? 16 : 8))
        .alphaDecay(many > 300 ? 0.08 : 0.045)
        .stop()
        .tick(many > 300 ? 60 : 130);
    }

    const figure = page.figure({
      title: graph.title || "Who is tied to whom",
      note: () => `${graph.note || ""} Each dot is a client, each line a tie, the thicker the heavier. Dots are coloured by how the client does with ${page.named(cell.chosen() ? cell.title(cell.chosen()) : "", 40)}.${cut}`,
      draw(width) {
        layout();
        const xs = d3.extent(places, (p) => p.x), ys = d3.extent(places, (p) => p.y);
        const height = Math.round(Math.min(460, Math.max(260, width * 0.62)));
        const model = cell.chosen(), named = many <= Math.min(NAMED, (width / 60) ** 2 / 3);
        return page.dots(cell, {
          each: true,
          points: places.map((p) => ({ client: p.client, x: p.x, y: p.y })), key: model,
          beyond: (i) => (model ? cell.beyond(model, i) : null),
          label: `Graph of ${page.count(many, "client")} with ${page.count(edges.length, "tie")}`,
          options: { width, height, margin: 18, x: { domain: page.padded(...xs), axis: null }, y: { domain: page.padded(...ys), axis: null } },
          under: [
            Plot.link(kept, { x1: (e) => places[e[0]].x, y1: (e) => places[e[0]].y, x2: (e) => places[e[1]].x, y2: (e) => places[e[1]].y, stroke: "var(--soft)", strokeOpacity: Math.max(0.07, Math.min(0.4, 250 / kept.length)), strokeWidth: (e) => 0.4 + (2.2 * Math.abs(e[2])) / Math.abs(heaviest[2] || 1), className: "edge" }),
            named ? Plot.text(places, { x: "x", y: "y", dy: -11, text: (p) => page.short(cell.clients.names[p.client], 12), fill: "currentColor", fontSize: 10.5 }) : null,
          ],
        });
      },
      table: () => edgeTable(cell, graph),
    });
    return page.follow(cell, figure);
  }

  /** Learned relations as a square of cells: blue for pulling together, hatched red for pushing apart. */
  function relations(cell, graph) {
    const names = cell.clients.names;
    const shown = page.thinned(d3.range(names.length), MOST_ROWS), place = new Set(shown);
    const cells = graph.edges.flatMap(([a, b, weight]) => (a === b ? [[a, b, weight]] : [[a, b, weight], [b, a, weight]])).filter(([a, b]) => place.has(a) && place.has(b));
    const most = d3.max(cells.filter(([a, b]) => a !== b), (one) => Math.abs(one[2])) || 1;
    return page.figure({
      title: graph.title || "Relations that were learned",
      note: `${graph.note || ""} The stronger the colour, the stronger the relation; the strongest is ${page.number(most)}.${shown.length < names.length ? ` ${shown.length} of ${names.length} clients are drawn, at even steps.` : ""}`,
      draw(width) {
        const side = Math.min(width, 460), named = shown.length <= NAMED, margin = named ? 84 : 16;
        const svg = page.plot(`Relations of ${shown.length} clients; the strongest is ${page.number(most)}`, {
          width: side, height: side, marginLeft: margin, marginTop: 12, marginRight: 12, marginBottom: named ? 84 : 16,
          x: { type: "band", domain: shown, axis: null, padding: 0.04 }, y: { type: "band", domain: shown, axis: null, padding: 0.04 },
          marks: [
            Plot.cell(cells, { x: "0", y: "1", fill: (one) => (one[2] < 0 ? "var(--lose)" : "var(--heat)"), fillOpacity: (one) => 0.04 + 0.96 * Math.min(1, Math.abs(one[2]) / most), className: "heat" }),
            named ? Plot.axisX({ tickSize: 0, label: null, tickRotate: -45, textAnchor: "end", tickFormat: (i) => page.short(names[i], 11) }) : null,
            named ? Plot.axisY({ tickSize: 0, label: null, tickFormat: (i) => page.short(names[i], 11) }) : null,
          ],
        });
        svg.addEventListener("pointermove", (event) => {
          const one = cells[event.target.__data__];
          if (event.target.tagName !== "rect" || !one) return page.hideTip();
          page.tip([page.el("p", {}, page.name(names[one[0]]), " and ", page.name(names[one[1]])), page.el("p", { class: "head" }, page.number(one[2]))], event.clientX, event.clientY);
        });
        svg.addEventListener("pointerleave", page.hideTip);
        return svg;
      },
      table: () => edgeTable(cell, graph),
    });
  }

  function spectrum(graph) {
    const values = d3.sort(graph.eigenvalues.filter((value) => !page.missing(value)));
    return page.figure({
      title: "Spectrum",
      note: graph.spectrum || "Eigenvalues, in order.",
      draw: (width) =>
        page.plot(`${values.length} eigenvalues from ${page.number(values[0])} to ${page.number(values[values.length - 1])}`, {
          width, height: 260, marginLeft: 54, marginTop: 22, marginBottom: 38,
          x: { label: "place →", labelArrow: "none", ticks: Math.min(8, values.length), tickFormat: (v) => (Number.isInteger(v) ? String(v) : "") },
          y: { label: "↑ eigenvalue", labelArrow: "none", grid: true, ticks: 5, zero: true, tickFormat: page.number },
          marks: [
            values.length <= 150 ? Plot.ruleX(values, { x: (_, i) => i + 1, y: (v) => v, stroke: "var(--accent)", strokeOpacity: 0.45 }) : null,
            Plot.dot(values, { x: (_, i) => i + 1, y: (v) => v, r: values.length > 150 ? 1.8 : 3.2, fill: "var(--accent)", className: "eigenvalue" }),
            Plot.ruleY([0], { strokeOpacity: 0.5 }),
          ],
        }),
      table: () => ({ header: ["place", "eigenvalue"], rows: values.map((value, i) => [String(i + 1), page.number(value)]) }),
    });
  }

  function edgeTable(cell, graph) {
    return {
      header: ["client", "client", "weight"], words: 2,
      rows: d3.sort(graph.edges, (edge) => -Math.abs(edge[2])).map(([a, b, weight]) => [page.clientLink(cell, a), page.clientLink(cell, b), page.number(weight)]),
    };
  }
})((window.idiolect = window.idiolect || {}));
