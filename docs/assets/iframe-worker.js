// A page that was opened as a file may not start a worker. The search then runs in a hidden frame of the page.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      // The search's script reads its own address from the first script that has one.
      frame.srcdoc = `<!doctype html><script>
        window.postMessage = (data) => parent.dispatchEvent(new CustomEvent("from-worker", {detail: data}));
      <\/script><script src="${new URL(url, document.baseURI)}"><\/script>`;
      window.addEventListener("from-worker", (event) => {
        this.dispatchEvent(new MessageEvent("message", {data: event.detail}));
      });
      this.ready = new Promise((resolve) => {
        frame.addEventListener("load", () => resolve(frame.contentWindow));
      });
      document.body.append(frame);
    }

    postMessage(data) {
      this.ready.then((inner) => inner.dispatchEvent(new MessageEvent("message", {data})));
    }

    terminate() {}
  };
  window.Worker = window.IFrameWorker;
}
