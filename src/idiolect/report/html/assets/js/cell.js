/* One federation's results, and what the reader has chosen: methods, a model, a search. */
(function (page) {
  "use strict";

  const COLOURS = 7;
  const WIDTH = 2; // of a line, in pixels; dashes are in widths
  const SYMBOLS = [null, "circle", "square", "triangle", "diamond", "star", "wye"];

  class Cell {
    constructor(data, place) {
      this.data = data;
      this.place = place;
      this.metric = data.metric;
      this.clients = data.clients;
      this.hidden = new Set();
      this.every = false; // whether charts have all models of a method, not only the one that stands for it
      this.found = null; // client numbers that the search matches; null without a search
      this._listeners = {};
      this._methods = new Map(data.methods.map((method) => [method.key, method]));
      this._models = new Map(data.models.map((model) => [model.key, model]));
      this._tried = null;
    }

    on(event, listener) {
      (this._listeners[event] ||= []).push(listener);
    }

    tell(event) {
      (this._listeners[event] || []).forEach((listener) => listener());
    }

    /** Keys of the models in the charts: of methods that are switched on, the default ones and the chosen one. */
    shown() {
      return this.data.models.map((model) => model.key).filter((key) => this.isShown(key));
    }

    isShown(key) {
      const model = this._models.get(key);
      return !model || (!this.hidden.has(model.method) && (model.default !== false || this.every || key === this._tried));
    }

    title(key) {
      return this._models.has(key) ? this._models.get(key).title : key;
    }

    method(key) {
      return this._methods.get((this._models.get(key) || {}).method) || { title: key, color: 6 };
    }

    colour(key) {
      return this.isMuted(key) ? "var(--same)" : page.colour(this.method(key).color);
    }

    /** Whether a model is of a setting that validation data did not choose: grey and thin. */
    isMuted(key) {
      return Boolean(this.method(key).muted);
    }

    dash(key) {
      const dash = this._models.get(key)?.dash;
      return dash?.length ? dash.map((length) => length * WIDTH).join(" ") : null;
    }

    /** A mark on the lines of methods beyond the palette's end. */
    symbol(key) {
      return SYMBOLS[Math.floor(this.method(key).color / COLOURS) % SYMBOLS.length];
    }

    /** Models with scores by client, of methods that are switched on. */
    scored() {
      return this.clients ? this.shown().filter((key) => this.clients.scores[key]) : [];
    }

    /** Models that can be compared with local training: all but Local, unless there is no other. */
    choosable() {
      if (!this.clients) return [];
      const models = this.data.models.filter((model) => !this.hidden.has(model.method) && this.clients.scores[model.key]).map((model) => model.key);
      return models.length > 1 ? models.filter((key) => key !== this.clients.local) : models;
    }

    /** The model in the client charts: the reader's choice, that of the headline, or the best. */
    chosen() {
      if (!this.clients) return null;
      const models = this.choosable();
      const known = [this._tried, this.data.about].find((key) => models.includes(key));
      if (known) return known;
      const sign = this.metric.higher ? -1 : 1;
      return d3.sort(models, (key) => this.isMuted(key), (key) => key === this.clients.shared, (key) => sign * (d3.mean(this.clients.scores[key]) ?? sign * Infinity))[0] ?? null;
    }

    choose(key) {
      this._tried = key;
      this.tell("chosen");
    }

    switchMethod(key, on) {
      if (on) this.hidden.delete(key);
      else this.hidden.add(key);
      this.tell("methods");
    }

    /** What a client gains with a model over another, positive where it is better; null where unknown. */
    gain(key, other, client) {
      const mine = this.clients.scores[key]?.[client], theirs = this.clients.scores[other]?.[client];
      if (page.missing(mine) || page.missing(theirs)) return null;
      return (mine - theirs) * (this.metric.higher ? 1 : -1);
    }

    /** 1, 0 or -1: better than Local beyond noise, no difference, worse; null where it is not known. */
    beyond(key, client) {
      return (this.clients.beyond || {})[key]?.[client] ?? null;
    }

    /** A client's number of labels by label, as shares; null without labels. */
    shares(client) {
      if (!this.clients.labels) return null;
      const counts = this.clients.labels.counts[client], total = d3.sum(counts);
      return counts.map((count) => (total ? count / total : 0));
    }

    size(client) {
      return this.clients.train[client] ?? this.clients.test[client];
    }

    sizeName() {
      return this.clients.train.some((size) => !page.missing(size)) ? "training samples" : "test samples";
    }
  }

  page.colour = (place) => `var(--c${place % COLOURS})`;

  page.open = function () {
    page.data = JSON.parse(document.getElementById("data").textContent);
    page.cells = page.data.cells.map((data, place) => new Cell(data, place));
  };
})((window.idiolect = window.idiolect || {}));
