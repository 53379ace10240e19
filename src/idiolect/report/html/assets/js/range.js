/* Axes from the data, where a few outliers may not crush the rest. */
(function (page) {
  "use strict";

  const CRUSHED = 2.5; // the rest would have less than 1 / 2.5 of the axis

  /** A little room on both sides; a single value gets an axis too. */
  page.padded = function (low, high, share = 0.05) {
    const room = high > low ? share * (high - low) : Math.abs(high || 1) * 0.05;
    return [low - room, high + room];
  };

  /** Whether known values differ; a chart over equal ones shows nothing. One value alone does not differ. */
  page.differ = (values) => new Set((values || []).filter((value) => !page.missing(value))).size > 1;

  /** An axis of scores without values that no score can have: per cent ends at 0 and 100. */
  page.possible = ([low, high], percent) => (percent ? [Math.max(0, low), Math.min(1, high)] : [low, high]);

  /** The axis of values by client: {domain, outside}, where outside counts values that lie beyond it. */
  page.valueRange = function (values, whole) {
    const sorted = values.filter((value) => !page.missing(value)).sort(d3.ascending);
    if (!sorted.length) return null;
    const [low, high] = [sorted[0], sorted[sorted.length - 1]];
    let [from, to] = [low, high];
    if (!whole && sorted.length >= 8) {
      const [a, b] = [d3.quantileSorted(sorted, 0.1), d3.quantileSorted(sorted, 0.9)];
      const reach = 2 * (b - a);
      if (high - low > CRUSHED * 2 * (b - a + 2 * reach) / 2 && b > a) {
        from = sorted.find((value) => value >= a - reach);
        to = d3.greatest(sorted, (value) => (value <= b + reach ? value : -Infinity));
      }
    }
    return { domain: page.padded(from, to), outside: sorted.filter((value) => value < from || value > to).length };
  };

  /** Spread labels that would overlap: places in pixels, ascending in, at least a gap apart out. */
  page.spread = function (places, gap, low, high) {
    const order = d3.range(places.length).sort((a, b) => places[a] - places[b]);
    const out = places.slice();
    order.forEach((i, k) => {
      if (k) out[i] = Math.max(out[i], out[order[k - 1]] + gap);
    });
    for (let k = order.length - 1, most = high; k >= 0; k -= 1, most = out[order[k + 1]] - gap) {
      out[order[k]] = Math.max(low + k * gap, Math.min(out[order[k]], most));
    }
    return out;
  };
})((window.idiolect = window.idiolect || {}));
