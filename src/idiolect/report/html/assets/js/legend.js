/* The legend: a checkbox for each method, and one for all models, which apply to every chart of the federation. */
(function (page) {
  "use strict";

  page.legend = function (cell) {
    const boxes = cell.data.methods.map((method) => [method.key, chip(cell, method)]);
    const every = page.el("button", { type: "button", class: "all" }, "All");
    every.hidden = true;
    every.addEventListener("click", () => {
      boxes.forEach(([, { box }]) => (box.checked = true));
      cell.hidden.clear();
      cell.tell("methods");
      boxes[0]?.[1].box.focus();
    });
    cell.on("methods", () => (every.hidden = cell.hidden.size === 0));
    return page.el("fieldset", {},
      page.el("legend", { class: "unseen" }, "Methods shown in the charts"),
      page.el("div", { class: "chips" }, boxes.map(([, { label }]) => label), every, models(cell)),
    );
  };

  /** A switch for the models that do not stand for their method; null where every method has one. */
  function models(cell) {
    if (cell.data.models.every((model) => model.default !== false)) return null;
    const box = page.el("input", { type: "checkbox", class: "models" });
    box.addEventListener("change", () => {
      cell.every = box.checked;
      cell.tell("methods");
      page.say(box.checked ? "All models shown" : "One model per method shown");
    });
    return page.el("label", { class: "chip" }, box, "all models");
  }

  function chip(cell, method) {
    const model = cell.data.models.find((one) => one.method === method.key);
    const box = page.el("input", { type: "checkbox", value: method.key });
    box.checked = true;
    box.addEventListener("change", () => {
      cell.switchMethod(method.key, box.checked);
      page.say(`${page.short(method.title, 60)} ${box.checked ? "shown" : "hidden"}`);
    });
    const symbol = model ? cell.symbol(model.key) : null;
    return { box, label: page.el("label", { class: "chip" }, box, page.stroke(method.muted ? "var(--same)" : page.colour(method.color), null, symbol), page.name(method.title)) };
  }

  /** A list to choose the model of the client charts from; it follows the legend. */
  page.modelChoice = function (cell) {
    const select = page.el("select", { on: { change: () => cell.choose(select.value) } });
    const fill = () => {
      const chosen = cell.chosen();
      select.replaceChildren(...cell.choosable().map((key) => page.el("option", { value: key, dir: "auto" }, page.middle(cell.title(key), 60))));
      if (chosen) select.value = chosen;
      label.hidden = select.options.length < 2;
    };
    const label = page.el("label", {}, "Model ", select);
    fill();
    cell.on("methods", fill);
    cell.on("chosen", fill);
    return label;
  };

  /** A checkbox to show the whole range; `offer` tells whether something is outside, and it is seen only then. */
  page.wholeRange = function (state, figure) {
    const box = page.el("input", { type: "checkbox" });
    const label = page.el("label", {}, box, " whole range");
    box.addEventListener("change", () => {
      state.whole = box.checked;
      figure().chart.redraw();
    });
    state.offer = (outside) => (label.hidden = !outside && !state.whole);
    label.hidden = true;
    return label;
  };
})((window.idiolect = window.idiolect || {}));
