/* A sweep as parallel coordinates: every setting a line, the chosen ones in their method's colour. */
(function (page) {
  "use strict";

  page.sweep = function (cell) {
    const sweep = cell.data.sweep;
    const figure = page.figure({
      title: "Settings that were tried",
      note: () => `Each line is one setting, from its values to its ${sweep.score_title || "score"} on the right. The chosen setting of each method is in colour, the others are grey.`,
      draw(width) {
        const runs = sweep.runs.filter((run) => !cell.hidden.has(run.method));
        if (!runs.length) return "No method is switched on.";
        return drawn(cell, sweep, runs, width);
      },
      table: () => ({
        header: ["method", ...sweep.dimensions.map((dimension) => dimension.title), sweep.score_title || "score", "chosen"],
        rows: sweep.runs.map((run) => [page.name(methodTitle(cell, run.method)), ...run.values.map(valueText), page.number(run.score), run.chosen ? "yes" : ""]),
      }),
    });
    cell.on("methods", figure.chart.stale);
    return figure;
  };

  function drawn(cell, sweep, runs, width) {
    const axes = [...sweep.dimensions.map((dimension, i) => axis(dimension, runs.map((run) => run.values[i]))), axis({ title: sweep.score_title || "score" }, runs.map((run) => run.score))];
    const points = runs.flatMap((run, number) =>
      axes.map((one, i) => ({ run, number, at: i, y: one.place(i < sweep.dimensions.length ? run.values[i] : run.score) })).filter((point) => !page.missing(point.y)));
    const plain = points.filter((point) => !point.run.chosen), chosen = points.filter((point) => point.run.chosen);
    const ticks = axes.flatMap((one, i) => one.ticks.map((tick) => ({ at: i, ...tick })));
    const line = Math.max(5, (width - 112) / axes.length / 12); // in widths of a letter
    const svg = page.plot(`${page.count(runs.length, "setting")} over ${page.count(sweep.dimensions.length, "dimension")}; ${page.count(runs.filter((run) => run.chosen).length, "is", "are")} chosen`, {
      width, height: 330, marginLeft: 52, marginRight: 60, marginTop: 50, marginBottom: 16,
      x: { type: "point", domain: d3.range(axes.length), padding: 0.12, axis: null }, y: { domain: [0, 1], axis: null },
      marks: [
        Plot.ruleX(d3.range(axes.length), { x: (i) => i, stroke: "currentColor", strokeOpacity: 0.4 }),
        Plot.line(plain, { x: "at", y: "y", z: "number", stroke: "var(--same)", strokeOpacity: 0.45, strokeWidth: 1.1, className: "tried" }),
        Plot.line(chosen, { x: "at", y: "y", z: "number", stroke: (point) => methodColour(cell, point.run.method), strokeWidth: 2.8, className: "chosen" }),
        Plot.dot(chosen, { x: "at", y: "y", r: 3.6, fill: (point) => methodColour(cell, point.run.method) }),
        Plot.text(axes, { x: (_, i) => i, y: 1, dy: -8, lineAnchor: "bottom", lineWidth: line, text: (one) => page.short(one.title, 40), fontWeight: 600, fill: "currentColor" }),
        Plot.text(ticks, { x: "at", y: "y", text: "text", dx: -6, textAnchor: "end", fontSize: 10.5, fill: "currentColor", stroke: "var(--card)", strokeWidth: 4, paintOrder: "stroke" }),
      ],
    });
    hover(svg, cell, sweep, points);
    return svg;
  }

  /** Where an axis has its values: linear, by orders of magnitude, or a list of words. */
  function axis(dimension, values) {
    const known = values.filter((value) => !page.missing(value));
    const words = dimension.values || known.some((value) => typeof value === "string");
    if (words) {
      const names = dimension.values ? dimension.values.map(String) : [...new Set(known.map(String))];
      const scale = d3.scalePoint(names, [0.06, 0.94]);
      return { title: dimension.title, place: (value) => (page.missing(value) ? null : scale(String(value)) ?? null), ticks: names.map((name) => ({ y: scale(name), text: page.short(name, 12) })) };
    }
    let [low, high] = known.length ? d3.extent(known) : [0, 1];
    const log = dimension.log && low > 0;
    if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - 1, high + 1];
    const scale = (log ? d3.scaleLog : d3.scaleLinear)([low, high], [0.04, 0.96]);
    const distinct = [...new Set(known)].sort(d3.ascending);
    const shown = distinct.length <= 7 ? distinct : log ? scale.ticks().filter((tick) => /^[125]/.test(tick.toExponential())) : scale.ticks(5);
    return { title: dimension.title, place: (value) => (page.missing(value) ? null : scale(value)), ticks: shown.map((tick) => ({ y: scale(tick), text: page.number(tick) })) };
  }

  function hover(svg, cell, sweep, points) {
    const x = svg.scale("x"), y = svg.scale("y");
    const tree = d3.quadtree(points, (point) => x.apply(point.at), (point) => y.apply(point.y));
    svg.addEventListener("pointermove", (event) => {
      const point = tree.find(...d3.pointer(event, svg), 30);
      if (!point) return page.hideTip();
      const { run } = point;
      page.tip([
        page.el("p", { class: "head" }, page.name(methodTitle(cell, run.method)), run.chosen ? " (chosen)" : ""),
        page.el("table", {}, page.el("tbody", {}, [...sweep.dimensions.map((dimension, i) => [dimension.title, valueText(run.values[i])]), [sweep.score_title || "score", page.number(run.score)]]
          .map(([name, value]) => page.el("tr", {}, page.el("td", {}, page.name(name)), page.el("td", {}, value))))),
      ], event.clientX, event.clientY);
    });
    svg.addEventListener("pointerleave", page.hideTip);
  }

  function methodTitle(cell, key) {
    return (cell.data.methods.find((method) => method.key === key) || { title: key }).title;
  }

  function methodColour(cell, key) {
    return page.colour((cell.data.methods.find((method) => method.key === key) || { color: 6 }).color);
  }

  function valueText(value) {
    return typeof value === "string" ? value : page.number(value);
  }
})((window.idiolect = window.idiolect || {}));
