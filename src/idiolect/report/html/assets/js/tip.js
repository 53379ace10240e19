/* The one tip that follows the pointer and the focus. */
(function (page) {
  "use strict";

  const GAP = 12;
  const TOP_LABELS = 6;
  const box = () => document.getElementById("tip");

  /** Show content beside a point of the window. */
  page.tip = function (content, x, y) {
    const tip = box();
    tip.replaceChildren(...[content].flat());
    if (tip.showPopover && !tip.matches(":popover-open")) tip.showPopover();
    else tip.classList.add("shown");
    const { width, height } = tip.getBoundingClientRect();
    const right = x + GAP + width < innerWidth, below = y + GAP + height < innerHeight;
    tip.style.left = `${Math.max(4, right ? x + GAP : Math.min(x - GAP - width, innerWidth - width - 4))}px`;
    tip.style.top = `${Math.max(4, below ? y + GAP : y - GAP - height)}px`;
  };

  page.tipAt = function (content, element) {
    const place = element.getBoundingClientRect();
    page.tip(content, place.left + place.width / 2, place.bottom - 6);
  };

  page.hideTip = function () {
    const tip = box();
    if (tip.hidePopover && tip.matches(":popover-open")) tip.hidePopover();
    tip.classList.remove("shown");
  };

  /** Show a help text on hover and focus of an element, and to screen readers. */
  page.help = function (element, text) {
    element.setAttribute("aria-description", text);
    const show = () => page.tipAt(page.el("p", {}, page.text(text)), element);
    element.addEventListener("pointerenter", show);
    element.addEventListener("focus", () => element.matches(":focus-visible") && show());
    element.addEventListener("pointerleave", page.hideTip);
    element.addEventListener("blur", page.hideTip);
  };

  /**
   * Let the arrow keys move through a chart, as a slider over its plot. values: where it can stand, ascending; tell:
   * what a screen reader says there; show, hide: the tip and the mark of one value.
   */
  page.slider = function (svg, { label, values, tell, show, hide }) {
    const [left, right] = svg.scale("x").range, [bottom, top] = svg.scale("y").range;
    const area = page.el("rect", { class: "slider", role: "slider", tabindex: 0, fill: "none", x: left, y: top, width: right - left, height: bottom - top, "aria-label": label, "aria-valuemin": values[0], "aria-valuemax": values[values.length - 1] });
    let at = values.length - 1;
    function move(to) {
      at = Math.max(0, Math.min(values.length - 1, to));
      area.setAttribute("aria-valuenow", values[at]);
      area.setAttribute("aria-valuetext", tell(values[at]));
    }
    move(at);
    area.addEventListener("focus", () => area.matches(":focus-visible") && show(values[at]));
    area.addEventListener("blur", hide);
    area.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity }[event.key];
      if (event.key === "Escape") return hide();
      if (!step) return;
      move(at + step);
      show(values[at]);
      event.preventDefault();
    });
    svg.setAttribute("role", "group");
    svg.querySelectorAll(":scope > g").forEach((part) => part.setAttribute("aria-hidden", "true"));
    svg.append(area);
  };

  /** What a client's tip says: name, sizes, label mix, scores. */
  page.clientTip = function (cell, client) {
    const clients = cell.clients, metric = cell.metric;
    const models = [...new Set([cell.chosen(), clients.shared, clients.local])].filter((key) => key && clients.scores[key]);
    const rows = models.map((key) =>
      page.el("tr", {},
        page.el("td", {}, page.name(cell.title(key))),
        page.el("td", {}, page.scoreOf(cell, key, client)),
      ),
    );
    const spread = models.some((key) => !page.missing(clients.half?.[key]?.[client])) ? ", ± half of the 95 % interval over seeds" : "";
    return [
      page.el("p", { class: "head" }, page.name(clients.names[client])),
      page.el("p", { class: "soft" }, page.sizes(cell, client).join(" · ")),
      rows.length ? page.el("table", {}, page.el("tbody", {}, rows)) : null,
      mix(cell, client),
      page.el("p", { class: "soft small" }, metric.name + spread),
    ].filter(Boolean);
  };

  page.scoreOf = function (cell, key, client) {
    const score = cell.clients.scores[key]?.[client], half = cell.clients.half?.[key]?.[client];
    const text = page.score(cell.metric, score);
    if (page.missing(score) || page.missing(half)) return text;
    return `${text} ± ${cell.metric.percent ? (100 * half).toFixed(1) : page.number(half)}`;
  };

  page.sizes = function (cell, client) {
    const { train, test, skew } = cell.clients;
    return [
      page.missing(train[client]) ? null : `${page.number(train[client])} train`,
      page.missing(test[client]) ? null : `${page.number(test[client])} test`,
      page.missing(skew[client]) ? null : `skew ${page.number(skew[client])}`,
    ].filter(Boolean);
  };

  /** One sentence for screen readers. */
  page.clientLabel = function (cell, client, key) {
    const clients = cell.clients;
    const scores = [...new Set([key, clients.local, clients.shared])]
      .filter((model) => model && clients.scores[model])
      .map((model) => `${page.named(cell.title(model), 60)} ${page.scoreOf(cell, model, client)}`);
    return [`Client ${page.named(clients.names[client], 80)}`, ...page.sizes(cell, client), ...scores].join(", ");
  };

  function mix(cell, client) {
    const shares = cell.shares(client);
    if (!shares) return null;
    const places = d3.range(shares.length).filter((i) => shares[i] > 0).sort((a, b) => shares[b] - shares[a]);
    const rest = d3.sum(places.slice(TOP_LABELS), (i) => shares[i]);
    const rows = places.slice(0, TOP_LABELS).map((i) => [cell.clients.labels.names[i], shares[i]]);
    if (rest > 0) rows.push([`${places.length - TOP_LABELS} others`, rest]);
    return page.el("div", { class: "mix" },
      rows.map(([name, share]) => [
        page.name(String(name)),
        page.el("span", {}, page.el("i", { style: { width: `${(100 * share).toFixed(1)}%` } })),
        page.el("span", {}, page.percent(share)),
      ]),
    );
  }
})((window.idiolect = window.idiolect || {}));
