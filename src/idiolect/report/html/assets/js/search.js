/* Search for a client by its name: the charts show which dots are meant, Enter opens the client's page. */
(function (page) {
  "use strict";

  const MOST = 8;

  page.search = function (cell) {
    const id = `found-${cell.place}`;
    const input = page.el("input", {
      type: "search", placeholder: "Find a client …", "aria-label": "Find a client by name", role: "combobox", dir: "auto",
      "aria-expanded": "false", "aria-controls": id, "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false",
    });
    const list = page.el("ul", { id, role: "listbox", "aria-label": "Clients found" });
    const names = cell.clients.names.map((name) => name.toLowerCase());
    let found = [], active = 0;
    list.hidden = true;

    function look() {
      const query = input.value.trim().toLowerCase();
      found = query ? d3.range(names.length).filter((i) => names[i].includes(query)) : [];
      found.sort((a, b) => names[b].startsWith(query) - names[a].startsWith(query) || names[a].length - names[b].length || a - b);
      cell.found = query ? new Set(found) : null;
      active = 0;
      show(Boolean(query));
      cell.tell("search");
      if (query) page.say(found.length ? page.count(found.length, "client") + " found" : "No client of this name");
    }

    function show(open) {
      list.hidden = !open;
      input.setAttribute("aria-expanded", String(open));
      const shown = found.slice(0, MOST);
      const items = shown.map((client, i) =>
        page.el("li", { id: `${id}-${i}`, role: "option", "aria-selected": String(i === active), on: { pointerdown: (event) => { event.preventDefault(); go(client); } } },
          page.name(cell.clients.names[client]), page.el("span", { class: "soft" }, page.sizes(cell, client)[0] || "")),
      );
      const rest = found.length - shown.length;
      if (open && !items.length) items.push(page.el("li", { class: "none", role: "option", "aria-disabled": "true", "aria-selected": "false" }, "No client of this name"));
      if (rest > 0) items.push(page.el("li", { class: "none", role: "option", "aria-disabled": "true", "aria-selected": "false" }, `and ${page.count(rest, "other")}`));
      list.replaceChildren(...items);
      if (open && shown.length) input.setAttribute("aria-activedescendant", `${id}-${active}`);
      else input.removeAttribute("aria-activedescendant");
    }

    function go(client) {
      show(false);
      page.goToClient(cell, client);
    }

    input.addEventListener("input", look);
    input.addEventListener("focus", () => found.length && show(true));
    input.addEventListener("blur", () => show(false));
    input.addEventListener("keydown", (event) => {
      const last = Math.min(found.length, MOST) - 1;
      if (event.key === "Enter" && found.length) go(found[Math.min(active, last)]);
      else if (event.key === "Escape" && input.value) {
        input.value = "";
        look();
      } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        active = Math.max(0, Math.min(last, active + (event.key === "ArrowDown" ? 1 : -1)));
        show(found.length > 0);
      } else return;
      event.preventDefault();
    });
    return page.el("div", { class: "find" }, input, list);
  };
})((window.idiolect = window.idiolect || {}));
