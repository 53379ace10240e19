/* A dot for each client, or hexagons for many: hover and focus name the client, a click opens its page. */
(function (page) {
  "use strict";

  const REACH = 22; // pixels from the pointer to the dot that it means
  const MOST_APART = 30;
  const SPACE = 4;
  const CROWD = 300; // clients; more are counted in hexagons
  const SIDE = 9; // of a hexagon, in pixels
  const KINDS = [
    { beyond: 0, fill: "none", stroke: "var(--same)", symbol: "circle" },
    { beyond: null, fill: "none", stroke: "var(--accent)", symbol: "circle" },
    { beyond: 1, fill: "var(--win)", stroke: "var(--win)", symbol: "circle" },
    { beyond: -1, fill: "var(--lose)", stroke: "var(--lose)", symbol: "triangle", rotate: 180 },
  ];

  /**
   * Draw dots. points: [{client, x, y}]; beyond: client -> 1, 0, -1 or null; options: of the plot; under: marks below
   * the dots; clamp: {x, y} axes, at whose ends values beyond are drawn; each: whether many stay dots.
   */
  page.dots = function (cell, { points, beyond, options, under, label, key, each, clamp = {} }) {
    const inside = (axis, value) => (clamp[axis] ? Math.max(clamp[axis][0], Math.min(clamp[axis][1], value)) : value);
    const big = points.length > CROWD;
    if (big && !each) {
      const svg = page.plot(label, { ...options, marks: under || [] }, true);
      const at = (one) => [svg.scale("x").apply(inside("x", one.x)), svg.scale("y").apply(inside("y", one.y))];
      return hexagons(svg, cell, points, at, beyond);
    }
    const layers = KINDS.map((kind) => points.filter((point) => beyond(point.client) === kind.beyond));
    const marks = KINDS.map((kind, i) =>
      Plot.dot(layers[i], {
        x: (point) => inside("x", point.x), y: (point) => inside("y", point.y), r: big ? 3.2 : 4.6, symbol: kind.symbol, rotate: kind.rotate || 0,
        fill: kind.fill, stroke: kind.stroke, strokeWidth: big ? 1 : 1.5, strokeOpacity: big ? 0.6 : 1, fillOpacity: big ? 0.4 : 0.85, className: `layer-${i}`, sort: null,
      }),
    );
    const svg = page.plot(label, { ...options, marks: [...(under || []), ...marks] }, true);
    const wired = [];
    layers.forEach((layer, i) => {
      svg.querySelectorAll(`.layer-${i} > *`).forEach((element) => wired.push({ element, ...layer[element.__data__] }));
    });
    svg.querySelectorAll("g[aria-label]").forEach((part) => part.removeAttribute("aria-label"));
    svg.querySelectorAll("g:not([class^=layer-])").forEach((part) => part.closest("[class^=layer-]") || part.setAttribute("aria-hidden", "true"));
    wired.sort((a, b) => a.x - b.x || a.y - b.y);
    const at = (one) => [svg.scale("x").apply(inside("x", one.x)), svg.scale("y").apply(inside("y", one.y))];
    apart(wired, at, svg);
    const seen = (one, i) => at(one)[i] + one.moved[i];
    const tree = d3.quadtree(wired, (one) => seen(one, 0), (one) => seen(one, 1));
    page.wire(svg, cell, wired, { near: (x, y) => tree.find(x, y, REACH) || null, label: (one) => page.clientLabel(cell, one.client, key) });
    return svg;
  };

  /** Dots at the same place lie side by side, in a small spiral. */
  function apart(wired, at, svg) {
    const seen = new Map(), right = svg.scale("x").range[1], top = svg.scale("y").range[1];
    for (const one of wired) {
      const place = at(one).map(Math.round).join(" "), k = Math.min(MOST_APART, seen.get(place) || 0);
      seen.set(place, k + 1);
      one.moved = k ? [SPACE * Math.sqrt(k) * Math.cos(2.4 * k), SPACE * Math.sqrt(k) * Math.sin(2.4 * k)] : [0, 0];
      const [x, y] = at(one); // none beyond the axes, where no score can be
      one.moved = [x + one.moved[0] > right ? -one.moved[0] : one.moved[0], y + one.moved[1] < top ? -one.moved[1] : one.moved[1]];
      if (k) one.element.style.translate = one.moved.map((value) => `${value.toFixed(1)}px`).join(" ");
    }
  }

  /** Many clients as hexagons: the fuller, the stronger; coloured where more of its clients gain than lose, or lose. */
  function hexagons(svg, cell, points, at, beyond) {
    const bins = new Map(), [dx, dy] = [SIDE * Math.sqrt(3), SIDE * 1.5];
    for (const point of points) {
      const [x, y] = at(point), near = [];
      for (const row of [Math.floor(y / dy), Math.ceil(y / dy)]) {
        const shift = (row & 1) / 2, column = Math.round(x / dx - shift);
        near.push({ x: (column + shift) * dx, y: row * dy });
      }
      const bin = d3.least(near, (one) => (one.x - x) ** 2 + (one.y - y) ** 2), name = `${bin.x} ${bin.y}`;
      if (!bins.has(name)) bins.set(name, { ...bin, clients: [] });
      bins.get(name).clients.push(point.client);
    }
    const most = d3.max(bins.values(), (bin) => bin.clients.length);
    const corners = d3.range(6).map((i) => [SIDE * Math.sin((i * Math.PI) / 3), SIDE * Math.cos((i * Math.PI) / 3)]);
    const wired = [...bins.values()].map((bin) => {
      const count = (sign) => bin.clients.filter((client) => beyond(client) === sign).length;
      const [gain, lose] = [count(1), count(-1)], kind = gain > lose ? "win" : gain < lose ? "lose" : "same";
      const d = `M${corners.map(([x, y]) => `${(bin.x + x).toFixed(1)},${(bin.y + y).toFixed(1)}`).join("L")}Z`;
      return { ...bin, gain, lose, element: page.el("path", { d, class: "hex", "fill-opacity": 0.25 + 0.7 * Math.sqrt(bin.clients.length / most), style: { fill: `var(--${kind})` } }) };
    });
    wired.sort((a, b) => a.x - b.x || a.y - b.y);
    const [left, right] = svg.scale("x").range, [bottom, top] = svg.scale("y").range, clip = `clip-${(page.clips = (page.clips || 0) + 1)}`;
    const found = page.el("g", { "aria-hidden": "true" });
    svg.querySelectorAll(":scope > g").forEach((part) => part.setAttribute("aria-hidden", "true"));
    svg.append(
      page.el("clipPath", { id: clip }, page.el("rect", { x: left, y: top, width: right - left, height: bottom - top })),
      page.el("g", { class: "hexagons", "clip-path": `url(#${clip})` }, wired.map((one) => one.element)), found);
    svg.append(...svg.querySelectorAll("[aria-label=text]")); // words stay above
    const words = (one) => `${page.count(one.clients.length, "client")}: ${one.gain} gain, ${one.lose} lose`;
    const names = (one) => one.clients.slice(0, 5).map((client) => page.short(cell.clients.names[client], 30)).join(", ") + (one.clients.length > 5 ? ", …" : "");
    const tree = d3.quadtree(wired, (one) => one.x, (one) => one.y);
    page.wire(svg, cell, wired, {
      near: (x, y) => tree.find(x, y, SIDE * 1.2) || null, label: (one) => `${words(one)}. ${names(one)}`,
      tip: (one) => (one.clients.length === 1 ? page.clientTip(cell, one.clients[0]) : [page.el("p", { class: "head" }, words(one)), page.el("p", {}, page.text(names(one))), page.el("p", { class: "soft small" }, "A click opens the first one.")]),
    });
    const { mark } = svg;
    svg.mark = () => {
      mark();
      const shown = cell.found ? points.filter((point) => cell.found.has(point.client)).slice(0, CROWD) : [];
      found.replaceChildren(...shown.map((point) => page.el("circle", { class: "sought", cx: at(point)[0], cy: at(point)[1], r: 4 })));
    };
    return svg;
  }

  /**
   * Give elements [{element, client}, or {element, clients}] of a chart hover, focus with the arrow keys, click and search. near: (x, y) of
   * the pointer -> one of them or null; label: what a screen reader says of one; tip: what its tip shows.
   */
  page.wire = function (svg, cell, wired, { near, label, tip = (one) => page.clientTip(cell, one.client) }) {
    const clientOf = (one) => one.client ?? one.clients[0];
    const place = new Map(wired.map((one, i) => [one.element, i]));
    let hot = null, current = 0;
    wired.forEach((one, i) => {
      one.element.classList.add("point");
      one.element.setAttribute("role", "button");
      one.element.setAttribute("tabindex", i ? "-1" : "0");
      one.element.setAttribute("aria-label", label(one));
      one.element.dataset.client = clientOf(one);
    });

    svg.setAttribute("tabindex", "-1"); // Chromium would stop at what listens to the focus

    function heat(one) {
      if (hot === one) return;
      hot?.element.classList.remove("hot");
      hot = one;
      hot?.element.classList.add("hot");
      svg.style.cursor = hot ? "pointer" : "";
    }

    function focus(i) {
      wired[current].element.setAttribute("tabindex", "-1");
      current = Math.max(0, Math.min(wired.length - 1, i));
      wired[current].element.setAttribute("tabindex", "0");
      wired[current].element.focus();
    }

    svg.addEventListener("pointermove", (event) => {
      const [x, y] = d3.pointer(event, svg);
      heat(near(x, y));
      if (hot) page.tip(tip(hot), event.clientX, event.clientY);
      else page.hideTip();
    });
    svg.addEventListener("pointerleave", () => {
      heat(null);
      page.hideTip();
    });
    svg.addEventListener("click", (event) => {
      const [x, y] = d3.pointer(event, svg);
      const one = near(x, y);
      if (one) page.goToClient(cell, clientOf(one));
    });
    svg.addEventListener("focusin", (event) => {
      const i = place.get(event.target);
      if (i === undefined) return;
      current = i;
      if (event.target.matches(":focus-visible")) page.tipAt(tip(wired[i]), event.target);
    });
    svg.addEventListener("focusout", page.hideTip);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }[event.key];
      if (!wired.length) return;
      if (step) focus(current + step);
      else if (event.key === "Enter" || event.key === " ") page.goToClient(cell, clientOf(wired[current]));
      else if (event.key === "Escape") return page.hideTip();
      else return;
      event.preventDefault();
    });
    svg.mark = () => {
      svg.classList.toggle("searching", cell.found !== null);
      wired.forEach((one) => one.element.classList.toggle("found", (one.clients || [one.client]).some((client) => cell.found?.has(client))));
    };
  };

  /** What filled and hollow dots mean. */
  page.dotsKey = function (cell) {
    const dot = (style, text, down) =>
      page.el("li", {},
        page.el("svg", { width: 14, height: 14, viewBox: "-7 -7 14 14", "aria-hidden": "true" },
          page.el("path", { d: down ? d3.symbol(d3.symbolTriangle, 60)() : "M4.6,0A4.6,4.6,0,1,1,-4.6,0A4.6,4.6,0,1,1,4.6,0", transform: down ? "rotate(180)" : null, "stroke-width": 1.5, style })),
        text);
    return page.el("ul", { class: "key" },
      dot({ fill: "var(--win)", stroke: "var(--win)" }, "better than local training, beyond noise"),
      dot({ fill: "none", stroke: "var(--same)" }, "no difference beyond noise"),
      dot({ fill: "var(--lose)", stroke: "var(--lose)" }, "worse, beyond noise", true),
      cell.clients.names.length > CROWD ? page.el("li", {}, "hexagons: the stronger, the more clients; in colour where more gain than lose, or lose than gain") : null);
  };
})((window.idiolect = window.idiolect || {}));
