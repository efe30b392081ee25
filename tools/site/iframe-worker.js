// Pages that are opened from a file may not start workers, so the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const home = new URL(url, location.href);
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.receive(data);
      inside.importScripts = (...urls) =>
        Promise.all(urls.map((one) => new Promise((done, failed) => {
          const script = inside.document.createElement("script");
          script.addEventListener("load", done);
          script.addEventListener("error", failed);
          script.src = new URL(one, home).href;
          inside.document.body.append(script);
        })));
      this.loaded = inside.importScripts(home.href);
    }

    receive(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    postMessage(data) {
      this.loaded.then(() => {
        const inside = this.frame.contentWindow;
        const event = new inside.MessageEvent("message", { data });
        inside.dispatchEvent(event);
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
}
