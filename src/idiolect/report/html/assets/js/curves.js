/* Learning curves: the mean over seeds with its band, zoomed to where methods differ; both losses in one panel. */
(function (page) {
  "use strict";

  const NARROW = 520; // pixels; below, lines are named in a list under the chart
  const GAP = 14;

  page.curves = function (cell) {
    const { quantities, band } = cell.data.curves;
    const [test, training] = ["test loss", "loss"].map((kind) => quantities.find((quantity) => quantity.kind === kind));
    const together = test && training ? [both(test, training)] : [test || training].filter(Boolean);
    return [...quantities.filter((quantity) => !quantity.kind.includes("loss")), ...together].map((quantity, i) => one(cell, quantity, i ? "" : band));
  };

  /** Test and training loss as one quantity, of which the training lines are pale. */
  function both(test, training) {
    const pale = training.series.map((series) => ({ ...series, pale: true, low: null, high: null }));
    const lines = (side) => [...new Set([test, training].flatMap((one) => one.outside.filter((each) => each.side === side).flatMap((each) => [...each.wholly, ...each.partly])))];
    return {
      ...test, title: "Test loss and training loss", pale: true, series: [...test.series, ...pale],
      domain: [Math.min(test.domain[0], training.domain[0]), Math.max(test.domain[1], training.domain[1])],
      outside: ["below", "above"].map((side) => ({ side, wholly: lines(side), partly: [] })),
    };
  }

  function one(cell, quantity, band) {
    const state = { whole: false, note: "" };
    const figure = page.figure({
      title: quantity.title.replace(/^./, (letter) => letter.toUpperCase()),
      tall: (width) => (width >= NARROW ? 320 : 290),
      note: () => [quantity.pale ? "Strong lines: test; pale lines: training." : "", band ? `Bands: ${band}.` : "", state.note, unfinished(cell, quantity)].filter(Boolean).join(" "),
      controls: [page.wholeRange(state, () => figure)],
      draw(width) {
        const curves = quantity.series.filter((series) => cell.isShown(series.model)).map(pointsOf);
        if (!curves.length) return "No method is switched on.";
        const domain = domainOf(quantity, curves, state.whole);
        if (!domain) return "No round was measured.";
        state.note = noteOf(cell, quantity, curves, domain);
        state.offer(state.note);
        return drawn(cell, quantity, coincide(quantity, curves), domain, width);
      },
      table: () => {
        const shown = quantity.series.filter((series) => cell.isShown(series.model));
        const rounds = [...new Set(shown.flatMap((series) => series.rounds))].sort(d3.ascending);
        const at = shown.map((series) => new Map(series.rounds.map((round, i) => [round, series.mean[i]])));
        return { header: ["round", ...shown.map((series) => titleOf(cell, series))], rows: rounds.map((round) => [String(round), ...at.map((values) => value(quantity, values.get(round)))]) };
      },
    });
    cell.on("methods", figure.chart.stale);
    cell.on("chosen", figure.chart.stale);
    return figure;
  }

  const titleOf = (cell, line) => `${cell.title(line.model)}${line.pale ? ", training" : ""}`;

  /** Which shown models still improve at the end, by the report's test. */
  function unfinished(cell, quantity) {
    const names = quantity.series.filter((series) => series.improving && cell.isShown(series.model)).map((series) => page.named(cell.title(series.model), 40));
    return names.length ? `↗ not converged, the last 20 % of evaluations still improve beyond noise: ${names.join("; ")}.` : "";
  }

  function drawn(cell, quantity, curves, domain, width) {
    const wide = width >= NARROW;
    const rounds = d3.extent(curves.flatMap((curve) => curve.points), (point) => point.x);
    const height = wide ? Math.max(320, curves.filter((curve) => !curve.pale).length * GAP + 60) : 260;
    const bands = curves.filter((curve) => !curve.pale && !cell.isMuted(curve.model) && curve.points.some((point) => !page.missing(point.low)));
    const clip = true;
    const marks = [
      ...bands.map((curve) => Plot.areaY(curve.points.filter((p) => !page.missing(p.low) && !page.missing(p.high)), { x: "x", y1: "low", y2: "high", fill: cell.colour(curve.model), fillOpacity: 0.12, className: "band", clip })),
      ...curves.map((curve) => Plot.line(curve.points, { x: "x", y: "y", stroke: cell.colour(curve.model), strokeWidth: cell.isMuted(curve.model) || curve.pale ? 1 : 2, strokeOpacity: curve.pale ? 0.55 : 1, strokeDasharray: curve.dash || cell.dash(curve.model), strokeDashoffset: curve.offset || 0, className: "curve", clip })),
      ...curves.filter((curve) => cell.symbol(curve.model)).map((curve) =>
        Plot.dot(curve.points.filter((_, i) => i % Math.ceil(curve.points.length / 8) === 0), { x: "x", y: "y", symbol: cell.symbol(curve.model), fill: cell.colour(curve.model), r: 4, className: "mark", clip })),
      ...curves.filter((curve) => curve.points.filter((p) => !page.missing(p.y)).length === 1).map((curve) => Plot.dot(curve.points, { x: "x", y: "y", fill: cell.colour(curve.model), r: 4, className: "mark", clip })),
    ];
    const letters = width > 800 ? 32 : 24, named = curves.filter((curve) => !curve.pale && !cell.isMuted(curve.model));
    const right = wide ? Math.min(6.6 * letters + 42, 34 + 6.6 * (d3.max(named, (curve) => label(cell, curve, letters).length) ?? 0)) : 12;
    const svg = page.plot(sentence(cell, quantity, curves), {
      width, height, marginLeft: 56, marginRight: right, marginTop: 20, marginBottom: 38, marks,
      x: { domain: rounds[0] === rounds[1] ? [rounds[0] - 1, rounds[1] + 1] : rounds, label: "round →", labelArrow: "none", grid: false, ticks: Math.max(3, Math.min(8, rounds[1] - rounds[0], width / 80)), tickFormat: (v) => (Number.isInteger(v) ? page.number(v) : "") },
      y: { domain, insetTop: 3, insetBottom: 3, label: null, grid: true, ticks: 6, tickFormat: page.tick(quantity.percent) },
    });
    if (wide) ends(svg, cell, named, domain, height, letters);
    hover(svg, cell, quantity, curves);
    return wide ? svg : withList(svg, cell, curves);
  }

  /** Names at the ends of the lines, moved apart where they would overlap. */
  function ends(svg, cell, curves, domain, height, letters) {
    const y = svg.scale("y"), x = svg.scale("x");
    const last = curves.map((curve) => curve.points.findLast((point) => !page.missing(point.y))).map((point) => point || { x: 0, y: domain[0] });
    const at = last.map((point) => y.apply(Math.max(domain[0], Math.min(domain[1], point.y))));
    const places = page.spread(at, GAP, 20, height - 38);
    const group = page.el("g", { class: "ends", "aria-hidden": "true" });
    curves.forEach((curve, i) => {
      const from = x.apply(last[i].x) + 3, to = x.range[1] + 22;
      group.append(page.el("path", { d: `M${from},${at[i]}L${to - 10},${places[i]}L${to - 2},${places[i]}`, fill: "none", "stroke-width": 1.2, style: { stroke: cell.colour(curve.model) } }));
      const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
      Object.entries({ x: to + 1, y: places[i], dy: "0.35em", fill: "currentColor", "font-size": 11.5, "text-anchor": "start" }).forEach(([key, v]) => text.setAttribute(key, v));
      text.textContent = label(cell, curve, letters);
      group.append(text);
    });
    svg.append(group);
  }

  const label = (cell, curve, letters) => page.named(cell.title(curve.model), letters) + (curve.improving ? " ↗" : "");

  function withList(svg, cell, curves) {
    const list = page.el("ul", { class: "key" }, curves.filter((curve) => !curve.pale).map((curve) => page.el("li", {}, page.swatch(cell, curve.model), page.name(cell.title(curve.model)), curve.improving ? "↗" : null)));
    return page.el("div", {}, svg, list);
  }

  /** The values at the round under the pointer, or that the arrow keys have chosen; best first. */
  function hover(svg, cell, quantity, curves) {
    const rounds = [...new Set(curves.flatMap((curve) => curve.points.map((point) => point.x)))].sort(d3.ascending);
    const x = svg.scale("x"), { range } = svg.scale("y");
    const rule = page.el("line", { y1: range[0], y2: range[1], "stroke-width": 1, "stroke-dasharray": "2 2", style: { stroke: "var(--soft)", display: "none" } });
    svg.append(rule);

    function at(round) {
      const values = curves.map((curve) => ({ curve, point: curve.points.find((point) => point.x === round) })).filter((v) => v.point && !page.missing(v.point.y));
      return values.sort((a, b) => b.point.y - a.point.y);
    }

    function tip(round) {
      rule.style.display = "";
      for (const side of ["x1", "x2"]) rule.setAttribute(side, x.apply(round));
      return [
        page.el("p", { class: "head" }, `Round ${round}`),
        page.el("table", {}, page.el("tbody", {}, at(round).map(({ curve, point }) => page.el("tr", {}, page.el("td", {}, page.swatch(cell, curve.model), page.name(page.middle(titleOf(cell, curve), 30))), page.el("td", {}, value(quantity, point.y)))))),
      ];
    }

    function hide() {
      rule.style.display = "none";
      page.hideTip();
    }

    svg.addEventListener("pointermove", (event) => page.tip(tip(rounds[d3.bisector((r) => r).center(rounds, x.invert(d3.pointer(event, svg)[0]))]), event.clientX, event.clientY));
    svg.addEventListener("pointerleave", hide);
    page.slider(svg, {
      label: `${quantity.title} by round`, values: rounds, hide,
      tell: (round) => `Round ${round}: ${inWords(cell, quantity, at(round))}`,
      show: (round) => page.tipAt(tip(round), rule),
    });
  }

  /** The axis that the report gives; that of all points where it is asked for, or where no point would be seen. */
  function domainOf(quantity, curves, whole) {
    const points = curves.flatMap((curve) => curve.points.filter((point) => !page.missing(point.y)));
    if (!points.length) return null;
    const [low, high] = quantity.domain;
    if (!whole && points.some((point) => point.y >= low && point.y <= high)) return [low, high];
    return page.possible(page.padded(d3.min(points, (p) => Math.min(p.y, p.low ?? p.y)), d3.max(points, (p) => Math.max(p.y, p.high ?? p.y)), 0.04), quantity.percent);
  }

  /** Lines that lie on each other get stripes, so that all are seen: the first whole below, then shifted dashes. */
  function coincide(quantity, curves) {
    const stacks = quantity.stacks.map((keys) => curves.filter((curve) => !curve.pale && keys.includes(curve.model)));
    for (const stack of stacks.filter((s) => s.length > 1)) {
      const dash = Math.max(5, 18 / stack.length);
      stack.forEach((curve, i) => {
        curve.dash = i ? `${dash} ${dash * (stack.length - 1)}` : "none";
        curve.offset = dash * (stack.length - i);
      });
    }
    return curves;
  }

  function pointsOf(series) {
    return { model: series.model, pale: series.pale, improving: series.improving, points: series.rounds.map((x, i) => ({ x, y: series.mean[i], low: series.low?.[i], high: series.high?.[i] })) };
  }

  /** Which lines the axis cuts, as the report names them, or whether any point is beyond it. */
  function noteOf(cell, quantity, curves, domain) {
    const beyond = (point) => !page.missing(point.y) && (point.y < domain[0] || point.y > domain[1]);
    const leaving = curves.filter((curve) => curve.points.some(beyond));
    const cut = new Set(quantity.outside.flatMap((side) => [...side.wholly, ...side.partly]));
    const names = [...new Set(leaving.filter((curve) => cut.has(curve.model)).map((curve) => page.named(cell.title(curve.model), 40)))];
    if (names.length) return `Cut off, so that the others differ visibly: ${names.slice(0, 4).join("; ")}${names.length > 4 ? ` and ${names.length - 4} more` : ""}.`;
    return leaving.length ? "The first rounds are beyond the axis." : "";
  }

  function value(quantity, number) {
    return quantity.percent ? page.percent(number, 1) : page.number(number);
  }

  function sentence(cell, quantity, curves) {
    const last = curves.map((curve) => ({ curve, point: curve.points.findLast((point) => !page.missing(point.y)) })).filter((one) => one.point);
    return `${quantity.title} by round. At the end: ${inWords(cell, quantity, last)}.`;
  }

  function inWords(cell, quantity, values) {
    return values.map(({ curve, point }) => `${page.named(titleOf(cell, curve), 40)} ${value(quantity, point.y)}`).join(", ") || "nothing was measured";
  }
})((window.idiolect = window.idiolect || {}));
