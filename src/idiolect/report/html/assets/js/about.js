/* Words around the charts: the headline, leaks, and how the results were made. */
(function (page) {
  "use strict";

  page.top = function () {
    const { title, description, missing } = page.data;
    return page.el("div", { class: "top", id: "answer" },
      page.el("h1", {}, page.text(title)),
      page.conclusion(page.data),
      description ? page.el("p", { class: "soft" }, page.text(description)) : null,
      missing?.length ? notice("What is missing", missing) : null);
  };

  /** The headline, its numbers, and chips that open to a sentence or two. */
  page.conclusion = function ({ decision, headline, numbers, chips }) {
    return page.el("div", { class: `conclusion ${decision}` },
      page.el("p", { class: "headline" }, page.text(headline)),
      page.el("p", { class: "numbers" }, page.text(numbers)),
      page.el("div", { class: "facts" }, chips.map((chip) =>
        page.el("details", { class: `fact ${/^(0 of|Who) /.test(chip.title) ? "nobody" : chip.kind}` }, page.el("summary", {}, page.text(chip.title)), page.el("p", {}, page.text(chip.text))))));
  };

  function notice(title, sentences, severe) {
    return page.el("div", { class: `notice${severe ? " severe" : ""}`, role: "note" },
      page.el("p", {}, page.el("strong", {}, title)),
      page.el("ul", {}, sentences.map((text) => page.el("li", {}, page.text(text)))));
  }
  page.notice = notice;

  page.part = function (id, title, lead, ...children) {
    return page.el("section", { class: "part", id, "aria-labelledby": `${id}-title` },
      page.el("h2", { id: `${id}-title` }, title), lead ? page.el("p", { class: "lead" }, page.text(lead)) : null, children);
  };

  page.leaks = function () {
    const { leaks } = page.data;
    const severe = (leaks || []).filter((leak) => leak.severe), mild = (leaks || []).filter((leak) => !leak.severe);
    let words = null;
    if (!leaks) words = page.el("p", {}, "No audit of the data came with these results.");
    else if (!leaks.length) words = page.el("p", {}, "The audit of the data found no leak.");
    return page.part("leaks", "Leak audit", "Whether test data reached training.", words,
      severe.length ? notice("Leaks found", severe.map((leak) => leak.text), true) : null,
      mild.length ? said(mild) : null);
  };

  /** What is no leak: at once if it is short, else to be opened. */
  function said(mild) {
    const list = page.el("ul", {}, mild.map((leak) => page.el("li", {}, page.text(leak.text))));
    return mild.length <= 4 ? list : page.el("details", { class: "extra" }, page.el("summary", {}, `Other lines of the audit: ${mild.length}`), list);
  }

  page.made = function () {
    const { protocol, chosen, how_to_read: read, made_with: made, command, source, seeds } = page.data;
    const list = (sentences) => page.el("ul", {}, sentences.map((text) => page.el("li", {}, page.text(text))));
    return page.part("made", "How it was made", "",
      page.el("div", { class: "columns" },
        page.el("div", {},
          protocol ? [page.el("h3", {}, "Protocol"), page.el("p", {}, page.text(protocol))] : null,
          chosen?.length ? [page.el("h3", {}, "Choices"), list(chosen)] : null,
          read?.length ? [page.el("h3", {}, "How to read this page"), list(read)] : null),
        page.el("div", {},
          page.el("h3", {}, "Made with"),
          pairs([...(made || []), ...(seeds?.length ? [["seeds", seeds.join(", ")]] : []), ...(source ? [["results from", source]] : [])]))),
      command ? [page.el("h3", {}, "The exact command"), commandBox(command)] : null);
  };

  function pairs(list) {
    return page.el("dl", { class: "pairs" }, list.map(([label, text]) => [page.el("dt", {}, page.short(String(label), 200)), page.el("dd", {}, page.short(String(text), 4000))]));
  }
  page.pairs = pairs;

  function commandBox(command) {
    const button = page.el("button", { type: "button", class: "copy" }, "Copy");
    const pre = page.el("pre", { class: "command", tabindex: "0", "aria-label": "The exact command" }, command);
    button.addEventListener("click", async () => {
      const done = await copy(command, pre);
      button.textContent = done ? "Copied" : "Marked: press Ctrl+C";
      page.say(button.textContent);
      setTimeout(() => (button.textContent = "Copy"), 2500);
    });
    return [pre, button];
  }

  /** To the clipboard; files on disk may not have one, then the text is marked. */
  async function copy(text, element) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const range = document.createRange();
      range.selectNodeContents(element);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      try {
        return document.execCommand("copy");
      } catch {
        return false;
      }
    }
  }
})((window.idiolect = window.idiolect || {}));
