/* Charts with a dot for each client: against Local, against the shared model, against size, skew and distance. */
(function (page) {
  "use strict";

  const HEIGHT = (width) => Math.round(Math.min(380, Math.max(250, width * 0.72)));

  /** Each client's score with the chosen model against a reference: above the line it wins. */
  page.against = function (cell, reference, phrase) {
    const state = { whole: false, outside: 0 };
    const marks = cell.clients.local && reference !== cell.clients.local ? " Colours still compare with local training." : "";
    const figure = page.figure({
      title: `Compared with ${phrase}`,
      tall: HEIGHT,
      note: () => notes(state, `Clients ${cell.metric.higher ? "above" : "below"} the line score better than with ${phrase}.${marks}`),
      controls: [page.wholeRange(state, () => figure)],
      draw(width) {
        const model = cell.chosen();
        if (!model) return "No method is switched on.";
        const { scores } = cell.clients;
        const points = page.pointsOf(cell, (i) => scores[reference][i], (i) => scores[model][i]);
        if (!points.length) return "No client has both scores.";
        const range = page.valueRange(points.flatMap((point) => [point.x, point.y]), state.whole);
        state.outside = range.outside;
        state.offer(range.outside);
        const domain = page.possible(range.domain, cell.metric.percent), tick = page.tick(cell.metric.percent);
        const name = page.named(cell.title(model), 34);
        const better = cell.metric.higher ? { x: domain[0], y: domain[1], textAnchor: "start", lineAnchor: "top", dx: 6, dy: 6 } : { x: domain[1], y: domain[0], textAnchor: "end", lineAnchor: "bottom", dx: -6, dy: -6 };
        return page.dots(cell, {
          points, key: model, clamp: { x: domain, y: domain },
          beyond: (i) => cell.beyond(model, i),
          label: `${cell.metric.name} of each client: ${name} compared with ${phrase}. ${summary(points, cell.metric)}`,
          options: {
            width, height: HEIGHT(width), marginLeft: 54, marginRight: 14, marginTop: 26, marginBottom: 42,
            x: { domain, label: `${page.named(cell.title(reference), 30)} →`, labelArrow: "none", tickFormat: tick, ticks: Math.max(3, width / 90), grid: true },
            y: { domain, label: `↑ ${name}`, labelArrow: "none", tickFormat: tick, ticks: 5, grid: true },
          },
          under: [
            Plot.areaY([domain[0], domain[1]], { x: (v) => v, y1: (v) => v, y2: () => domain[cell.metric.higher ? 1 : 0], fill: "var(--win)", fillOpacity: 0.07 }),
            Plot.line([domain[0], domain[1]], { x: (v) => v, y: (v) => v, stroke: "currentColor", strokeOpacity: 0.55, strokeWidth: 1.2 }),
            Plot.text(["better"], { ...better, x: () => better.x, y: () => better.y, fill: "var(--win)", fontSize: 11 }),
          ],
        });
      },
      table: () => ({
        header: ["client", phrase, cell.chosen() ? cell.title(cell.chosen()) : "", "gain"],
        rows: rowsOf(cell, (i) => [page.scoreOf(cell, reference, i), page.scoreOf(cell, cell.chosen(), i), page.difference(cell.metric, cell.gain(cell.chosen(), reference, i))]),
      }),
    });
    return follow(cell, figure);
  };

  /** The chosen model's gain over a reference against a number of each client. axis: {title, of, values, log}. */
  page.gainAgainst = function (cell, reference, phrase, axis) {
    const state = { whole: false, outside: 0 };
    const figure = page.figure({
      title: axis.title,
      tall: (width) => Math.min(320, HEIGHT(width)),
      note: () => notes(state, axis.note || ""),
      controls: [page.wholeRange(state, () => figure)],
      draw(width) {
        const model = cell.chosen();
        if (!model) return "No method is switched on.";
        if (model === reference) return `${page.named(cell.title(model), 40)} is the reference itself: choose another model.`;
        const values = axis.values(model);
        const points = page.pointsOf(cell, (i) => (axis.log && !(values?.[i] > 0) ? null : values?.[i]), (i) => cell.gain(model, reference, i));
        if (!points.length) return axis.none || "No client has both numbers.";
        const range = page.valueRange([...points.map((point) => point.y), 0], state.whole);
        state.outside = range.outside;
        state.offer(range.outside);
        const [low, high] = d3.extent(points, (point) => point.x);
        const domain = axis.log ? [low / 1.15, high * 1.15] : page.padded(low, high);
        return page.dots(cell, {
          points, key: model, clamp: { y: range.domain },
          beyond: (i) => (axis.plain ? null : cell.beyond(model, i)),
          label: `${axis.title}, ${page.named(cell.title(model), 40)} over ${phrase}. ${points.length} clients.`,
          options: {
            width, height: Math.min(320, HEIGHT(width)), marginLeft: 54, marginRight: 14, marginTop: 26, marginBottom: 42,
            x: { type: axis.log ? "log" : "linear", domain, label: `${axis.of} →`, labelArrow: "none", ticks: axis.log ? logTicks(domain, width / 55) : Math.max(3, width / 90), tickFormat: axis.log ? page.number : undefined, grid: true },
            y: { domain: range.domain, label: `↑ gain over ${page.short(phrase, 24)}`, labelArrow: "none", ticks: 5, grid: true, tickFormat: cell.metric.percent ? (v) => page.difference(cell.metric, v).replace(".0 ", " ").replace(" points", "") : page.number },
          },
          under: [Plot.ruleY([0], { stroke: "currentColor", strokeOpacity: 0.55 })],
        });
      },
      table: () => ({
        header: ["client", axis.of, "gain"],
        rows: rowsOf(cell, (i) => [page.number(axis.values(cell.chosen())?.[i]), page.difference(cell.metric, cell.gain(cell.chosen(), reference, i))]),
      }),
    });
    return follow(cell, figure);
  };

  page.pointsOf = function (cell, x, y) {
    return d3.range(cell.clients.names.length)
      .map((client) => ({ client, x: x(client), y: y(client) }))
      .filter((point) => !page.missing(point.x) && !page.missing(point.y));
  };

  /** Redraw a figure when the legend, the model or the search changes. */
  function follow(cell, figure) {
    cell.on("methods", figure.chart.stale);
    cell.on("chosen", figure.chart.stale);
    cell.on("search", () => figure.chart.mark?.());
    return figure;
  }
  page.follow = follow;

  function rowsOf(cell, values) {
    if (!cell.chosen()) return [];
    return cell.clients.names.map((_, i) => [page.clientLink(cell, i), ...values(i)]);
  }

  function notes(state, text) {
    const outside = state.outside ? `${page.count(state.outside, "value is", "values are")} beyond the axis, drawn at its edge.` : "";
    return [text, outside].filter(Boolean).join(" ");
  }

  function summary(points, metric) {
    const above = points.filter((point) => (metric.higher ? point.y > point.x : point.y < point.x)).length;
    return `${above} of ${page.count(points.length, "client")} score better.`;
  }

  /** Round numbers inside a logarithmic axis, as many as have room for their labels. */
  function logTicks([low, high], most) {
    const digits = [d3.range(1, 10), [1, 2, 5], [1, 3], [1]];
    const powers = d3.range(Math.floor(Math.log10(low)), Math.ceil(Math.log10(high)) + 1);
    const inside = (set) => powers.flatMap((power) => set.map((digit) => digit * 10 ** power)).filter((value) => value >= low && value <= high);
    const found = digits.map(inside).find((ticks) => ticks.length <= most) || inside([1]);
    return found.length >= 2 ? found : d3.ticks(low, high, 3);
  }
})((window.idiolect = window.idiolect || {}));
