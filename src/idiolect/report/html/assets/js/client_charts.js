/* The charts of one client's page. */
(function (page) {
  "use strict";

  const TOP_LABELS = 24;

  /** The scores of every model for one client, with half of its 95 % interval, over all clients' scores as small ticks. */
  page.clientScores = function (cell, client) {
    const { scores, half } = cell.clients;
    const better = cell.metric.higher ? d3.descending : d3.ascending;
    const models = () => cell.scored().filter((key) => !page.missing(scores[key][client])).sort((a, b) => better(scores[a][client], scores[b][client]));
    const figure = page.figure({
      title: `Its ${cell.metric.name} with each model`,
      note: "Best first. The bar and ± are half of the 95 % interval over seeds (Student's t); pale ticks are the other clients. Values beyond the axis are drawn at its end.",
      draw(width) {
        const keys = models();
        if (!keys.length) return "No model was scored for this client.";
        const error = (key) => half?.[key]?.[client] ?? 0;
        const [least, most] = cell.metric.percent ? [0, 1] : [-Infinity, Infinity]; // the possible values, where bars end
        const from = (key) => Math.max(least, scores[key][client] - error(key)), to = (key) => Math.min(most, scores[key][client] + error(key));
        const others = keys.flatMap((key) => page.thinned(scores[key].filter((value) => !page.missing(value)), 200).map((value) => ({ key, value })));
        const mine = keys.flatMap((key) => [from(key), to(key)]);
        const domain = page.possible(page.valueRange([...others.map((one) => one.value), ...mine], false).domain, cell.metric.percent);
        const inside = (value) => Math.max(domain[0], Math.min(domain[1], value));
        const left = Math.min(width * 0.36, 190), letters = Math.floor(left / 7.2);
        const local = cell.clients.local && keys.includes(cell.clients.local) ? scores[cell.clients.local][client] : null;
        return page.plot(`${cell.metric.name} of this client: ${keys.map((key) => `${page.named(cell.title(key), 40)} ${page.scoreOf(cell, key, client)}`).join(", ")}`, {
          width, height: 27 * keys.length + 62, marginLeft: left, marginRight: 62, marginTop: 26, marginBottom: 34,
          x: { domain, label: null, tickFormat: page.tick(cell.metric.percent), ticks: Math.max(3, width / 110), grid: true },
          y: { type: "band", domain: keys, padding: 0.1, label: null, tickSize: 0, tickFormat: (key) => page.middle(cell.title(key), letters) },
          marks: [
            Plot.tickX(others.filter((one) => one.value >= domain[0] && one.value <= domain[1]), { x: "value", y: "key", stroke: "currentColor", strokeOpacity: 0.1, insetTop: 4, insetBottom: 4 }),
            page.missing(local) ? null : Plot.ruleX([inside(local)], { stroke: "currentColor", strokeOpacity: 0.6, strokeDasharray: "3 3" }),
            page.missing(local) ? null : Plot.text([inside(local)], { x: (v) => v, frameAnchor: "top", dy: -18, text: () => "local training", fontSize: 11, fill: "currentColor" }),
            Plot.link(keys, { x1: (key) => inside(from(key)), x2: (key) => inside(to(key)), y1: (key) => key, y2: (key) => key, stroke: (key) => cell.colour(key), strokeWidth: 3, strokeOpacity: 0.5 }),
            Plot.dot(keys, { x: (key) => inside(scores[key][client]), y: (key) => key, r: 5.5, fill: (key) => cell.colour(key), stroke: "var(--card)", strokeWidth: 1.5, className: "mine" }),
            Plot.text(keys, { y: (key) => key, text: (key) => page.score(cell.metric, scores[key][client]), frameAnchor: "right", textAnchor: "start", dx: 8, fill: "currentColor" }),
          ],
        });
      },
      table: () => ({ header: ["model", cell.metric.name], rows: models().map((key) => [page.name(cell.title(key)), page.scoreOf(cell, key, client)]) }),
    });
    return figure;
  };

  /** The client's labels compared with all clients' labels. */
  page.clientLabels = function (cell, client) {
    const { labels } = cell.clients;
    const mine = cell.shares(client), sums = labels.names.map((_, i) => d3.sum(labels.counts, (counts) => counts[i])), all = d3.sum(sums) || 1;
    const places = d3.range(labels.names.length).filter((i) => mine[i] > 0 || sums[i] > 0);
    const shown = (places.length > TOP_LABELS ? d3.sort(places, (i) => -Math.max(mine[i], sums[i] / all)).slice(0, TOP_LABELS) : places).sort(d3.ascending);
    return page.figure({
      title: "Its labels",
      note: `Bars: this client. Ticks: all clients together.${shown.length < places.length ? ` The ${TOP_LABELS} most frequent of ${places.length} labels.` : ""}`,
      draw(width) {
        const left = Math.min(width * 0.3, 22 + 7 * d3.max(shown, (i) => page.short(String(labels.names[i]), 18).length));
        return page.plot(`Labels of this client: ${d3.sort(shown, (i) => -mine[i]).slice(0, 6).map((i) => `${page.named(String(labels.names[i]), 30)} ${page.percent(mine[i])}`).join(", ")}`, {
          width, height: 22 * shown.length + 44, marginLeft: left, marginRight: 48, marginTop: 8, marginBottom: 32,
          x: { domain: [0, Math.max(0.05, d3.max(shown, (i) => Math.max(mine[i], sums[i] / all)))], label: null, tickFormat: page.tick(true), ticks: 5, grid: true },
          y: { type: "band", domain: shown, padding: 0.25, label: null, tickSize: 0, tickFormat: (i) => page.short(String(labels.names[i]), Math.floor(left / 7.5)) },
          marks: [
            Plot.barX(shown, { x: (i) => mine[i], y: (i) => i, fill: "var(--heat)", fillOpacity: 0.8, className: "bar" }),
            Plot.tickX(shown, { x: (i) => sums[i] / all, y: (i) => i, stroke: "currentColor", strokeWidth: 2.2 }),
            Plot.text(shown, { y: (i) => i, text: (i) => page.percent(mine[i]), frameAnchor: "right", textAnchor: "start", dx: 8, fill: "currentColor" }),
          ],
        });
      },
      table: () => ({ header: ["label", "this client", "share", "all clients"], rows: shown.map((i) => [page.name(String(labels.names[i])), String(labels.counts[client][i]), page.percent(mine[i], 1), page.percent(sums[i] / all, 1)]) }),
    });
  };

  /** True against predicted labels of one model. */
  page.confusion = function (cell, client, key) {
    const { confusion, labels } = cell.clients;
    const names = (labels?.names || d3.range(confusion[key][client].length)).map(String), matrix = confusion[key][client];
    const cells = matrix.flatMap((row, i) => row.map((count, j) => ({ i, j, count, share: d3.sum(row) ? count / d3.sum(row) : 0 }))).filter((one) => one.count > 0);
    const all = Object.values(confusion).map((byClient) => byClient?.[client]).filter(Boolean); // the same labels for every model
    const used = d3.range(matrix.length).filter((i) => all.some((one) => one[i].some((c) => c > 0) || one.some((row) => row[i] > 0)));
    return page.figure({
      title: page.middle(cell.title(key), 60),
      note: "Rows: the true label. Columns: what the model said. The stronger the colour, the larger the share of the row.",
      draw(width) {
        if (!used.length) return "No test sample.";
        const letters = Math.min(10, d3.max(used, (i) => names[i].length)), margin = 14 + 7 * letters;
        const side = Math.min(width, 420), room = (side - margin - 10) / used.length;
        return page.plot(`Confusion of ${page.named(cell.title(key), 60)}: ${page.percent(d3.sum(matrix, (row, i) => row[i]) / (d3.sum(matrix.flat()) || 1))} right`, {
          width: side, height: side - margin + (letters > 3 ? margin : 24), marginLeft: margin, marginRight: 10, marginTop: letters > 3 ? margin * 0.8 : 24, marginBottom: 8,
          x: { type: "band", domain: used, axis: "top", padding: 0.04, tickSize: 0, label: null, tickRotate: letters > 3 ? -45 : 0, tickFormat: (i) => page.short(names[i], 10) },
          y: { type: "band", domain: used, padding: 0.04, tickSize: 0, label: null, tickFormat: (i) => page.short(names[i], 10) },
          marks: [
            Plot.cell(cells, { x: "j", y: "i", fill: (one) => (one.i === one.j ? "var(--heat)" : "var(--lose)"), fillOpacity: (one) => 0.06 + 0.44 * one.share, className: "heat" }),
            room > 20 ? Plot.text(cells, { x: "j", y: "i", text: (one) => String(one.count), fontSize: 11, fill: "currentColor", stroke: "var(--card)", strokeWidth: 2.5, strokeOpacity: 0.6, paintOrder: "stroke" }) : null,
          ],
        });
      },
      table: () => ({ header: ["true label", ...used.map((j) => names[j])], rows: used.map((i) => [page.name(names[i]), ...used.map((j) => String(matrix[i][j]))]) }),
    });
  };

  /** How far off one model is: true value minus prediction, sample by sample. */
  page.residuals = function (cell, client, key) {
    const values = cell.clients.residuals[key][client].filter((value) => !page.missing(value));
    return page.figure({
      title: page.middle(cell.title(key), 60),
      note: values.length ? `Residuals of ${page.count(values.length, "test sample")}; the middle one is ${page.number(d3.median(values))}.` : "",
      draw: (width) => !values.length ? "No test sample." :
        page.plot(`Residuals of ${page.named(cell.title(key), 60)}, from ${page.number(d3.min(values))} to ${page.number(d3.max(values))}`, {
          width, height: 200, marginLeft: 40, marginBottom: 36, marginTop: 14,
          x: { label: "residual →", labelArrow: "none", tickFormat: page.number, ticks: width / 90 }, y: { label: null, grid: true, ticks: 4 },
          marks: [
            Plot.rectY(values, Plot.binX({ y: "count" }, { x: (v) => v, fill: cell.colour(key), fillOpacity: 0.75, thresholds: 20, className: "bar" })),
            Plot.ruleX([0], { strokeDasharray: "3 3" }), Plot.ruleY([0]),
          ],
        }),
      table: () => ({ header: ["sample", "residual"], rows: values.map((value, i) => [String(i + 1), page.number(value)]) }),
    });
  };
})((window.idiolect = window.idiolect || {}));
