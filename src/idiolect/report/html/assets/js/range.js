/* Axes from the data, where a few outliers may not crush the rest. */
(function (page) {
  "use strict";

  const CRUSHED = 2.5; // the rest would have less than 1 / 2.5 of the axis
  const EARLY = 0.25; // of the rounds: where every method still rises

  /** A little room on both sides; a single value gets an axis too. */
  page.padded = function (low, high, share = 0.05) {
    const room = high > low ? share * (high - low) : Math.abs(high || 1) * 0.05;
    return [low - room, high + room];
  };

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

  /** The axis of several curves: {domain, clipped: curves that leave it, early: whether only first rounds do}. */
  page.curveRange = function (curves, whole) {
    const known = curves.map((curve) => curve.points.filter((point) => !page.missing(point.y))).filter((points) => points.length);
    if (!known.length) return null;
    const all = known.flat();
    const last = d3.max(all, (point) => point.x), first = d3.min(all, (point) => point.x);
    const spans = known.map((points) => span(points, whole ? first : first + EARLY * (last - first)));
    let kept = spans;
    if (!whole && spans.length >= 3) {
      for (let dropped = 0; dropped < Math.max(1, Math.floor(spans.length / 4)); dropped += 1) {
        const next = d3.least(kept.map((_, i) => kept.filter((_, j) => j !== i)), size);
        if (!(size(kept) > CRUSHED * size(next)) || size(next) === 0) break;
        kept = next;
      }
    }
    const domain = page.padded(d3.min(kept, (s) => s[0]), d3.max(kept, (s) => s[1]), 0.04);
    const outside = (point) => !page.missing(point.y) && (point.y < domain[0] || point.y > domain[1]);
    const clipped = curves.filter((curve) => curve.points.some((point) => outside(point) && point.x >= first + EARLY * (last - first)));
    return { domain, clipped, early: !clipped.length && curves.some((curve) => curve.points.some(outside)) };
  };

  function span(points, from) {
    const late = points.filter((point) => point.x >= from);
    const used = late.length ? late : points;
    return [d3.min(used, (p) => Math.min(p.y, p.low ?? p.y)), d3.max(used, (p) => Math.max(p.y, p.high ?? p.y))];
  }

  function size(spans) {
    return d3.max(spans, (s) => s[1]) - d3.min(spans, (s) => s[0]);
  }

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
